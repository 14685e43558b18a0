import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { beforeAll, expect, test } from 'vitest';
import { signInWithLink } from '../../dashboard/server/dashboard.fixture.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { AccountsService, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { internal } from '../contract/internal.ts';
import { startSignpost } from '../harness/processes.ts';
import { type Family, scrape, sumOf } from '../harness/scrape.ts';
import { EXPRESSIONS, labelsIn, seriesIn } from './expressions.ts';
import { type ObservedSignpost, startObserved } from './observed-signpost.ts';
import { hasPromtool, promtool } from './promtool.ts';

const PAGE = 'docs/operating/metrics.md';

let observed: ObservedSignpost;
let families: readonly Family[];

beforeAll(async () => {
  observed = await startObserved();
  families = await observed.families();
});

const get = (port: number, path: string, method = 'GET') => fetch(`http://${LOOPBACK}:${port}${path}`, { method });

test.each(['corePort', 'gatewayPort', 'dashboardPort'] as const)(
  'a process serves metrics and health on METRICS_PORT: %s',
  async (program) => {
    const port = observed[program];
    const metrics = await get(port, '/metrics');
    expect(metrics.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await metrics.text()).toMatch(/^# TYPE nodejs_eventloop_utilization_ratio gauge$/m);
    for (const [path, body] of [
      ['/healthz', 'alive'],
      ['/readyz', 'ready'],
    ] as const) {
      const response = await get(port, path);
      expect([response.status, await response.text()]).toEqual([200, body]);
    }
    expect((await get(port, '/')).status).toBe(404);
    expect((await get(port, '/metrics', 'POST')).status).toBe(405);
  },
);

test('one port of a gateway gives the figures of all its processes', async () => {
  const text = await (await get(observed.gatewayPort, '/metrics')).text();
  const processes = [...text.matchAll(/^nodejs_eventloop_utilization_ratio\{process="([^"]+)"\} (\S+)$/gm)];
  expect(processes.map(([, name]) => name).sort()).toEqual(['carrier', 'main', 'worker 0', 'worker 1']);
  for (const [, , value] of processes) expect(Number(value)).toBeLessThanOrEqual(1);
  // One header for all.
  expect(text.match(/^# TYPE nodejs_eventloop_utilization_ratio /gm)).toHaveLength(1);
});

test('requests to the dashboard are measured by route, and its calls to the core by method', async () => {
  const { signpost, dashboard, dashboardPort } = observed;
  const accounts = internal(signpost, AccountsService, (await signpost.createAccount()).accountId);
  const email = 'anna@example.com';
  await accounts.addMember({ email, role: Role.VIEWER });
  const { token } = await accounts.createSignInLink({ email });
  const requests = async (route: string, status: number) =>
    sumOf(await scrape(dashboardPort), 'http_server_request_duration_seconds_count', {
      http_request_method: 'POST',
      http_route: route,
      http_response_status_code: String(status),
    });
  const calls = async (method: string, code: string) =>
    sumOf(await scrape(dashboardPort), 'rpc_client_call_duration_seconds_count', {
      rpc_system_name: 'connectrpc',
      rpc_method: `signpost.${method}`,
      rpc_response_status_code: code,
    });
  expect(await requests('/sign-in/link', 303)).toBe(0);
  const browser = await signInWithLink(dashboard, token);
  const call = (method: string, body: Uint8Array<ArrayBuffer> | string = '{}', type = 'application/json') => {
    const headers = { 'content-type': type };
    return browser.request(`${dashboard.url}/rpc/signpost.${method}`, { method: 'POST', body, headers });
  };
  expect((await call('codes.v1.CodesService/ListCodes')).status).toBe(200);
  expect((await call('codes.v1.CodesService/ListCodes')).status).toBe(200);
  expect((await call('codes.v1.CodesService/GetCode', '{"id":"qr_x"}')).status).toBe(404);
  // A stream answers 200 whatever its end says.
  const message = Buffer.from('{"id":"batch_x"}');
  const framed = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
  const stream = await call('batches.v1.BatchesService/WatchBatch', framed, 'application/connect+json');
  expect(await stream.text()).toContain('"not_found"');
  // A request is measured once its answer is complete.
  const rpc = '/rpc/:service/:method';
  await expect
    .poll(async () => [await requests('/sign-in/link', 303), await requests(rpc, 200), await requests(rpc, 404)])
    .toEqual([1, 3, 1]);
  expect(await calls('accounts.v1.AccountsService/RedeemSignInLink', 'ok')).toBe(1);
  expect(await calls('codes.v1.CodesService/ListCodes', 'ok')).toBe(2);
  expect(await calls('codes.v1.CodesService/GetCode', 'not_found')).toBe(1);
  expect(await calls('batches.v1.BatchesService/WatchBatch', 'not_found')).toBe(1);
});

test('neither probes of the dashboard nor paths that nobody knows have series of their own', async () => {
  const { dashboard, dashboardPort } = observed;
  expect((await fetch(`${dashboard.url}/readyz`)).status).toBe(200);
  expect((await fetch(`${dashboard.url}/assets/unknown-file`)).status).toBe(404);
  const unknown = { http_response_status_code: '404' };
  const measured = () => scrape(dashboardPort);
  await expect
    .poll(async () => sumOf(await measured(), 'http_server_request_duration_seconds_count', unknown))
    .toBeGreaterThan(0);
  expect(JSON.stringify(await measured())).not.toMatch(/readyz|unknown-file/);
});

test('a connection that breaks off, or sends no HTTP, does no harm', async () => {
  for (const text of ['GET /metrics HTTP/1.1\r\n', 'no http\r\n\r\n', 'GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n']) {
    const socket = connect(observed.corePort, LOOPBACK);
    await once(socket, 'connect');
    socket.on('error', () => undefined).write(text);
    socket.resetAndDestroy();
  }
  expect((await get(observed.corePort, '/healthz')).status).toBe(200);
});

test('every line of their logs is JSON, and none asks for anybody to act', async () => {
  for (const process of [...observed.signpost.cores, ...observed.signpost.gateways]) {
    const lines = (await process.log()).split('\n').filter(Boolean);
    expect(lines.map((line) => JSON.parse(line) as { level: number }).filter(({ level }) => level > 40)).toEqual([]);
  }
});

/** One row for each metric, as in the table of the page. A failure has the label `error_type` as well. */
function rows(measured: readonly Family[]): string[] {
  return [...Map.groupBy(measured, ({ name }) => name)].map(([name, same]) => {
    const labels = new Set(same.flatMap(({ samples }) => samples.flatMap((sample) => Object.keys(sample.labels))));
    const shown = [...labels].filter((label) => !['error_type', 'le', 'process'].includes(label)).sort();
    const [{ type = '', unit = '', help = '' } = {}] = same;
    return [`\`${name}\``, type, unit, shown.map((label) => `\`${label}\``).join(', '), help].join(' | ');
  });
}

test('the table of docs/operating/metrics.md has every metric, with its labels, unit and meaning, and no other', () => {
  const [, table = ''] = /<!-- metrics -->\n([\s\S]*?)<!-- end -->/.exec(readFileSync(PAGE, 'utf8')) ?? [];
  const listed = table.split('\n').filter((line) => line.startsWith('| `'));
  const cells = listed.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
      .join(' | '),
  );
  expect(cells.toSorted()).toEqual(rows(families).toSorted());
});

test('docs/operating/metrics.md lists the values of the labels that rules select by', () => {
  const [, table = ''] = /<!-- values of labels -->\n([\s\S]*?)<!-- end -->/.exec(readFileSync(PAGE, 'utf8')) ?? [];
  const samples = families.flatMap((family) => family.samples);
  const rows = [...table.matchAll(/^\| `(\w+)`\s*\| (.*) \|$/gm)];
  expect(rows.map(([, label]) => label)).toContain('signpost_scan_result');
  for (const [, label = '', cell = ''] of rows) {
    const listed = [...cell.matchAll(/`([^`]+)`/g)].map(([, value]) => value);
    const measured = new Set(samples.flatMap(({ labels }) => labels[label] ?? []));
    expect(measured.size, label).toBeGreaterThan(0);
    if (label === 'rpc_response_status_code') continue;
    // The values of these two are all measured, if only as 0; others when they occur.
    if (['signpost_refusal_reason', 'signpost_scan_stage'].includes(label)) expect(listed.length).toBe(measured.size);
    expect(listed, label).toEqual(expect.arrayContaining([...measured]));
  }
  const spelled = { grpc: /^[A-Z_]+$/, connectrpc: /^[a-z_]+$/ };
  for (const { labels } of samples.filter(({ labels }) => labels.rpc_system_name)) {
    expect(labels.rpc_response_status_code).toMatch(spelled[labels.rpc_system_name as keyof typeof spelled]);
  }
});

test('every metric and label of the dashboards and alerts exists', () => {
  const samples = families.flatMap((family) => family.samples);
  // Prometheus adds `up`.
  const names = new Set([...samples.map(({ name }) => name), 'up']);
  const known = new Set(samples.flatMap(({ labels }) => Object.keys(labels)));
  // Of Prometheus, and one that only failures have.
  for (const label of ['instance', 'job', 'error_type']) known.add(label);
  expect(EXPRESSIONS.length).toBeGreaterThan(60);
  for (const [file, expression] of EXPRESSIONS) {
    expect({ file, expression, unknown: seriesIn(expression).filter((name) => !names.has(name)) }).toEqual({
      file,
      expression,
      unknown: [],
    });
    expect({ file, expression, unknown: labelsIn(expression).filter((name) => !known.has(name)) }).toEqual({
      file,
      expression,
      unknown: [],
    });
    expect(seriesIn(expression).length).toBeGreaterThan(0);
  }
});

test('the series of all stages of scans exist before a scan has reached them', () => {
  const stages = families
    .flatMap(({ samples }) => samples)
    .filter(({ name }) => name === 'signpost_scans_total')
    .map(({ labels }) => labels.signpost_scan_stage);
  expect(new Set(stages)).toEqual(new Set(['recorded', 'duplicate', 'dead_lettered']));
});

test.runIf(hasPromtool)('promtool finds nothing wrong with the metrics', async () => {
  for (const port of [observed.corePort, observed.gatewayPort, observed.dashboardPort]) {
    const text = await (await get(port, '/metrics')).text();
    // OpenTelemetry's conventions name them so.
    const named = /^(db_client_connection|process_unix_file_descriptor)_count .* should not have "_count" suffix$/;
    const found = promtool(['check', 'metrics'], text)
      .split('\n')
      .filter((line) => line !== '' && !named.test(line));
    expect(found).toEqual([]);
  }
});

test('a gateway that starts without the log says for how long its routes may be stale', async () => {
  const port = await freePort();
  const kafkaBrokers = `${LOOPBACK}:${await freePort()}`;
  await startSignpost({ kafkaBrokers, env: { ROLES: 'rpc' }, gatewayEnv: { METRICS_PORT: String(port) } });
  const age = async () => {
    const family = (await scrape(port)).find(({ name }) => name === 'signpost_gateway_routes_age_seconds');
    return family?.samples[0]?.value;
  };
  await expect.poll(age).toBeGreaterThan(0);
});
