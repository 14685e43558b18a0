import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { type Dashboard, signInWithLink, startDashboard } from '../../dashboard/server/dashboard.fixture.ts';
import type { NewAccount } from '../../local/create-account.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { AccountsService, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { internal } from '../contract/internal.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';
import { scrape } from '../harness/scrape.ts';
import { type Collector, startCollector } from './collector.ts';
import { grpcCollector, protobufCollector } from './raw-collector.ts';

const EVENTUALLY = { interval: 100 };

/** Kinds of spans in OTLP. */
const [SERVER, CLIENT, CONSUMER] = [2, 3, 5];

let collector: Collector;
let signpost: Signpost;
let dashboard: Dashboard;
let account: NewAccount;
const metricsPort = await freePort();

beforeAll(async () => {
  collector = await startCollector();
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_METRIC_EXPORT_INTERVAL: '1000',
    OTEL_BSP_SCHEDULE_DELAY: '100',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
  };
  signpost = await startSignpost({
    env,
    gatewayEnv: { OTEL_SERVICE_NAME: 'gateway-of-test', METRICS_PORT: String(metricsPort) },
  });
  dashboard = await startDashboard(signpost, { env });
  account = await signpost.createAccount();
});

function newTrace(): { traceId: string; headers: Record<string, string> } {
  const traceId = randomBytes(16).toString('hex');
  const traceparent = `00-${traceId}-${randomBytes(8).toString('hex')}-01`;
  return { traceId, headers: { traceparent, authorization: `Bearer ${account.apiKey}` } };
}

function createCode(headers: Record<string, string>): Promise<Response> {
  const body = JSON.stringify({ target_url: 'https://example.com/secret-target' });
  return fetch(`${signpost.url}/api/v1/qr-codes`, { method: 'POST', headers, body });
}

test('a trace goes from the caller through gateway, core, statements and the log', async () => {
  const { traceId, headers } = newTrace();
  expect((await createCode(headers)).status).toBe(201);
  const find = (kind: number, name: string, parent?: { spanId: string }) =>
    collector.spans.find(
      (span) =>
        span.traceId === traceId &&
        span.kind === kind &&
        span.name === name &&
        (parent === undefined || span.parentSpanId === parent.spanId),
    );
  await expect.poll(() => find(CONSUMER, 'process signpost.routes.v1'), EVENTUALLY).toBeDefined();
  const method = 'signpost.codes.v1.CodesService/CreateCode';
  await expect.poll(() => find(SERVER, method) && find(SERVER, 'POST /api/v1/qr-codes'), EVENTUALLY).toBeDefined();
  const request = find(SERVER, 'POST /api/v1/qr-codes');
  const client = find(CLIENT, method, request);
  const server = find(SERVER, method, client);
  const statement = find(CLIENT, 'codes_create_group', server);
  expect(request?.attributes).toMatchObject({
    'http.request.method': 'POST',
    'http.route': '/api/v1/qr-codes',
    'http.response.status_code': 201,
  });
  const rpc = { 'rpc.system.name': 'grpc', 'rpc.method': method, 'rpc.response.status_code': 'OK' };
  expect(client?.attributes).toEqual(rpc);
  expect(server?.attributes).toEqual(rpc);
  expect(statement?.attributes).toEqual({ 'db.system.name': 'postgresql', 'db.query.summary': 'codes_create_group' });
  expect(request?.resource).toMatchObject({
    'service.name': 'gateway-of-test',
    'signpost.process': 'worker 0',
    'deployment.environment.name': 'test',
  });
  expect(server?.resource).toMatchObject({ 'service.name': 'signpost-core' });
  expect(JSON.stringify(collector.spans)).not.toMatch(/secret-target|sk_live|127\.0\.0\.1:/);
});

test('a trace goes from a request to the dashboard to the core, also if its body arrives later', async () => {
  const accounts = internal(signpost, AccountsService, account.accountId);
  const email = 'anna@example.com';
  await accounts.addMember({ email, role: Role.VIEWER });
  const browser = await signInWithLink(dashboard, (await accounts.createSignInLink({ email })).token);
  const headers = { 'content-type': 'application/json' };
  const url = `${dashboard.url}/rpc/signpost.codes.v1.CodesService/ListCodes`;
  expect((await browser.request(url, { method: 'POST', body: '{}', headers })).status).toBe(200);
  const late = request(`${dashboard.url}/session/account`, {
    method: 'POST',
    headers: {
      ...headers,
      origin: dashboard.url,
      cookie: `signpost-session=${browser.cookie(dashboard.url, 'signpost-session')}`,
      expect: '100-continue',
    },
  });
  late.flushHeaders();
  await once(late, 'continue');
  late.end(JSON.stringify({ id: account.accountId }));
  const [answer] = (await once(late, 'response')) as [IncomingMessage];
  expect(answer.resume().statusCode).toBe(200);
  for (const [route, method] of [
    ['/session/account', 'signpost.accounts.v1.AccountsService/ListMemberships'],
    ['/sign-in/link', 'signpost.accounts.v1.AccountsService/RedeemSignInLink'],
    ['/rpc/:service/:method', 'signpost.codes.v1.CodesService/ListCodes'],
  ]) {
    const find = (kind: number, name: string, parentSpanId: string | undefined) =>
      collector.spans.find((span) => span.kind === kind && span.name === name && span.parentSpanId === parentSpanId);
    const asked = () => find(SERVER, `POST ${route}`, '');
    const client = () => find(CLIENT, `${method}`, asked()?.spanId);
    const server = () => find(SERVER, `${method}`, client()?.spanId);
    await expect.poll(() => server()?.resource['service.name'], EVENTUALLY).toBe('signpost-core');
    expect(asked()?.resource['service.name']).toBe('signpost-dashboard');
    const rpc = { 'rpc.system.name': 'connectrpc', 'rpc.method': method, 'rpc.response.status_code': 'ok' };
    expect([client()?.attributes, server()?.attributes]).toEqual([rpc, rpc]);
  }
  expect(JSON.stringify(collector.spans)).not.toContain(email);
});

test('metrics of every process are sent, while a gateway serves its own as well', async () => {
  const processes = () =>
    new Set(collector.metrics.map(({ resource }) => resource['signpost.process'] ?? resource['service.name']));
  await expect
    .poll(processes, EVENTUALLY)
    .toEqual(new Set(['signpost-core', 'signpost-dashboard', 'main', 'carrier', 'worker 0']));
  const names = () => collector.metrics.map(({ name }) => name);
  await fetch(`${signpost.url}/r/unknown`);
  await expect
    .poll(names, EVENTUALLY)
    .toEqual(
      expect.arrayContaining(['rpc.server.call.duration', 'signpost.scan.duration', 'nodejs.eventloop.utilization']),
    );
  expect((await scrape(metricsPort)).map(({ name }) => name)).toContain('signpost_scan_duration_seconds');
});

test('a gateway that serves no metrics sends which of its processes respond and were restarted', async () => {
  const own = await startCollector();
  const { gateways } = await startSignpost({
    gatewayEnv: {
      OTEL_EXPORTER_OTLP_ENDPOINT: own.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_METRIC_EXPORT_INTERVAL: '3000',
    },
  });
  const latest = (name: string) => {
    const points = own.metrics.findLast((metric) => metric.name === `signpost.gateway.process.${name}`)?.points ?? [];
    return Object.fromEntries(points.map(({ attributes, value }) => [attributes['signpost.process'], value]));
  };
  await expect.poll(() => latest('responding'), EVENTUALLY).toEqual({ carrier: 1, 'worker 0': 1 });
  expect(latest('restarts')).toEqual({ carrier: 0, 'worker 0': 0 });
  const sent = own.metrics.length;
  await gateways[0]?.kill('SIGTERM');
  // A gateway that stops sends the last ones without waiting for processes that have stopped already.
  expect(own.metrics.slice(sent).map(({ name }) => name)).toContain('signpost.gateway.process.restarts');
  expect(latest('responding')).toEqual({ carrier: 1, 'worker 0': 1 });
});

test('log lines written in a span have its trace', async () => {
  const [core, gateway] = [signpost.cores[0], signpost.gateways[0]];
  await core?.kill();
  const { traceId, headers } = newTrace();
  expect((await createCode(headers)).status).toBe(503);
  const line = async () =>
    ((await gateway?.log()) ?? '')
      .split('\n')
      .slice(0, -1)
      .find((text) => text.includes('requests failed because no core answered')) ?? '{}';
  // The answer does not wait for the line.
  await expect
    .poll(async () => JSON.parse(await line()))
    .toMatchObject({ trace_id: traceId, span_id: expect.stringMatching(/^[0-9a-f]{16}$/) });
  await core?.restart();
});

test.each([
  ['http/protobuf, the default', undefined, protobufCollector],
  ['grpc', 'grpc', grpcCollector],
])('traces and metrics are sent as %s', async (_name, protocol, startRawCollector) => {
  const { url, exports } = await startRawCollector();
  const exporting = await startSignpost({
    gateways: 0,
    roles: ['rpc'],
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      ...(protocol && { OTEL_EXPORTER_OTLP_PROTOCOL: protocol }),
      OTEL_METRIC_EXPORT_INTERVAL: '1000',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    },
  });
  onTestFinished(exporting.stop);
  await exporting.createAccount();
  // Strings are in protobuf as they are.
  const sent = (signal: string, text: string) =>
    exports.some((each) => each.signal === signal && each.message.includes(text));
  await expect.poll(() => sent('traces', 'signpost.accounts.v1.AccountsService/CreateAccount'), EVENTUALLY).toBe(true);
  await expect.poll(() => sent('metrics', 'rpc.server.call.duration'), EVENTUALLY).toBe(true);
  expect(sent('traces', 'signpost-core')).toBe(true);
});

test('a collector that is away costs one log line of level 40, and no request', async () => {
  let attempts = 0;
  const server = createServer((socket) => {
    attempts++;
    socket.destroy();
  }).listen(0, LOOPBACK);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const away = await startSignpost({
    gateways: 0,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://${LOOPBACK}:${(server.address() as AddressInfo).port}`,
      OTEL_METRIC_EXPORT_INTERVAL: '200',
      OTEL_EXPORTER_OTLP_TIMEOUT: '200',
      OTEL_BSP_SCHEDULE_DELAY: '100',
      OTEL_LOG_LEVEL: 'debug',
    },
  });
  onTestFinished(away.stop);
  await away.createAccount();
  const lines = async () => ((await away.cores[0]?.log()) ?? '').split('\n').filter(Boolean);
  const reported = async () => (await lines()).filter((line) => line.includes('can’t be sent to the collector'));
  await expect.poll(async () => (await reported()).length, EVENTUALLY).toBe(1);
  await away.createAccount();
  const before = attempts;
  await expect.poll(() => attempts, EVENTUALLY).toBeGreaterThan(before + 10);
  expect(await reported()).toHaveLength(1);
  for (const line of await lines()) expect(JSON.parse(line)).toHaveProperty('level');
});

const refuseSdk = `--import=${pathToFileURL(join(import.meta.dirname, 'refuse-sdk.ts')).href}`;

test('no code of the SDK is loaded by default', async () => {
  const env = { NODE_OPTIONS: refuseSdk };
  const plain = await startSignpost({ env });
  expect((await fetch(`${plain.url}/r/unknown`)).status).toBe(404);
  const { url } = await startDashboard(plain, { env });
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  await plain.stop();
});

test('no code of the SDK is loaded if it is disabled', async () => {
  const env = {
    NODE_OPTIONS: refuseSdk,
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
    OTEL_SDK_DISABLED: 'true',
  };
  // Every program decides by the same function.
  const disabled = await startSignpost({ gateways: 0, env });
  onTestFinished(disabled.stop);
  await disabled.createAccount();
});
