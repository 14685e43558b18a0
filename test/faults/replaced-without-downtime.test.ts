import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { expect, inject, test, vi } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import type { NewAccount } from '../../local/create-account.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { ScansService } from '../../proto/gen/signpost/scans/v1/scans_pb.ts';
import { internal } from '../contract/internal.ts';
import { startCaddy } from '../harness/caddy.ts';
import { startInheritedGateway } from '../harness/inherited-gateway.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';
import { balancedAgent, grpcClient, httpClient, type Send } from '../harness/rolling-clients.ts';
import { startLoad } from '../harness/steady-load.ts';
import { expectCounted } from './visitors.ts';

/**
 * Every process is replaced while scans and calls arrive, as docs/operating/upgrades.md describes it: two gateways
 * behind Caddy with the policy of deploy/caddy/Caddyfile, one gateway whose port systemd keeps, which this test stands
 * in for, two cores, and a worker.
 */

const SCANS_PER_SECOND = 200;
const CALLS_PER_SECOND = 20;
/** Longer than the two seconds between Caddy's health checks. */
const DRAIN_SECONDS = 4;
/** Between two processes, in ms: until Caddy knows that the one is ready before the other is not. */
const PAUSE_MS = 2_500;
/** They share the calls, because each may make 120 requests a minute. */
const ACCOUNTS = 20;
const TARGET = 'https://example.com/menu';
/** The agent replaces it by the address of a core. */
const ANY_CORE = 'http://core.invalid';
const EVENTUALLY = { timeout: 60_000, interval: 250 };

const hasCaddy = spawnSync('caddy', ['version']).status === 0;

test.skipIf(!hasCaddy && !process.env.CI)(
  'no scan and no call fails while every process is replaced',
  async () => {
    const kafkaBrokers = inject('kafkaBrokers');
    const kafka = kafkaBrokers !== null && { KAFKA_BROKERS: kafkaBrokers, KAFKA_PREFIX: `t${randomUUID()}.` };
    const shared = { TRUST_PROXY: LOOPBACK, ...kafka };
    const signpost = await startSignpost({
      cores: 3,
      coresCalled: 2,
      roles: ['rpc', 'rpc', 'relay,recorder,worker'],
      gateways: 2,
      env: { ...shared, DRAIN_SECONDS: String(DRAIN_SECONDS) },
    });
    const inherited = await startInheritedGateway(signpost, shared);
    const balanced = await balance(signpost);
    const clients = { kept: httpClient(true), opened: httpClient(false) };
    const accounts = await Promise.all(Array.from({ length: ACCOUNTS }, () => signpost.createAccount()));
    const code = await createCode(clients.opened, balanced, accounts[0] as NewAccount);
    const followed = () => clients.opened('GET', `${inherited.url}/r/${code.short_code}`, 302);
    const warmUp = { sent: 1, answered: 1 };
    await followed();

    const scans = startLoad(SCANS_PER_SECOND, {
      'a scan through Caddy': scan(clients.kept, balanced, code),
      'a scan through Caddy on a new connection': scan(clients.opened, balanced, code),
      'a scan': scan(clients.kept, inherited.url, code),
      'a scan on a new connection': scan(clients.opened, inherited.url, code),
    });
    const calls = startLoad(
      CALLS_PER_SECOND,
      callsOf({ signpost, balanced, inherited: inherited.url, clients, accounts }),
    );

    const processes = [...signpost.cores, ...signpost.gateways].map((process) => async () => {
      await process.kill('SIGTERM');
      await process.restart();
    });
    for (const replace of [...processes, () => inherited.replace()]) {
      await sleep(PAUSE_MS);
      await replace();
    }
    await sleep(PAUSE_MS);
    await Promise.all([scans.stop(), calls.stop()]);

    expect({ scans: Object.fromEntries(scans.failed), calls: Object.fromEntries(calls.failed) }).toEqual({
      scans: {},
      calls: {},
    });
    expect(scans.succeeded).toBeGreaterThan(SCANS_PER_SECOND * 10);
    expect(calls.succeeded).toBeGreaterThan(CALLS_PER_SECOND * 10);
    await expectCounted(signpost.databaseUrl, code, [warmUp, { sent: scans.sent, answered: scans.succeeded }]);
    await expectLedger(signpost, scans.succeeded + warmUp.answered);
  },
  180_000,
);

/** Starts Caddy in front of the gateways, as deploy/caddy/Caddyfile says, and returns its address. */
async function balance({ gateways }: Signpost): Promise<string> {
  const port = await freePort();
  // With the snippet that it imports.
  const [, policy = ''] =
    /^(\(keepalive\) \{\n.*?^\(gateways\) \{\n.*?^\}\n)/ms.exec(await readFile('deploy/caddy/Caddyfile', 'utf8')) ?? [];
  const hosts = gateways.map(({ url }) => new URL(url).host).join(' ');
  await startCaddy(`
{
	admin off
	auto_https off
}
${policy.replace('gateway-1:8080 gateway-2:8080', hosts)}
http://${LOOPBACK}:${port} {
	import gateways
}
`);
  const url = `http://${LOOPBACK}:${port}`;
  const answers = async () => expect((await fetch(`${url}/healthz`)).status).toBe(200);
  await vi.waitFor(answers, { timeout: 20_000, interval: 100 });
  return url;
}

function scan(send: Send, url: string, code: CodeJson): () => Promise<unknown> {
  return () => send('GET', `${url}/r/${code.short_code}`, 302);
}

async function createCode(send: Send, url: string, { apiKey }: NewAccount): Promise<CodeJson> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const created = await send('POST', `${url}/api/v1/qr-codes`, 201, { headers, json: { target_url: TARGET } });
  return JSON.parse(created).data;
}

/** Calls of the REST API, of Connect over HTTP/1.1 and of gRPC, each for another account. */
function callsOf(options: {
  signpost: Signpost;
  balanced: string;
  inherited: string;
  clients: { kept: Send; opened: Send };
  accounts: readonly NewAccount[];
}): Record<string, () => Promise<unknown>> {
  const { signpost, balanced, inherited, clients } = options;
  const accounts = [...options.accounts];
  const calls: Record<string, () => Promise<unknown>> = {};
  const next = () => accounts.shift() as NewAccount;
  const rest = [
    ['Caddy, kept', clients.kept, balanced],
    ['Caddy, new', clients.opened, balanced],
    ['kept', clients.kept, inherited],
    ['new', clients.opened, inherited],
  ] as const;
  for (const [how, send, url] of rest) {
    const account = next();
    calls[`POST (${how})`] = () => createCode(send, url, account);
    const [reader, writer] = [next(), next()];
    const read = { authorization: `Bearer ${reader.apiKey}` };
    calls[`GET (${how})`] = () => send('GET', `${url}/api/v1/qr-codes`, 200, { headers: read });
    let changed: Promise<CodeJson> | undefined;
    calls[`PATCH (${how})`] = async () => {
      changed ??= createCode(send, url, writer);
      const { id } = await changed;
      const change = { headers: { authorization: `Bearer ${writer.apiKey}` }, json: { name: `${Math.random()}` } };
      await send('PATCH', `${url}/api/v1/qr-codes/${id}`, 200, change);
    };
  }
  const cores = balancedAgent(signpost.cores.slice(0, 2));
  for (const how of ['one', 'another', 'a third', 'a fourth']) {
    const [byConnect, byGrpc] = [next(), next()];
    const metadata = { authorization: `Bearer ${signpost.serviceToken}` };
    const transport = createConnectTransport({
      baseUrl: ANY_CORE,
      httpVersion: '1.1',
      nodeOptions: { agent: cores },
      interceptors: [
        (proceed) => (request) => {
          for (const [name, value] of Object.entries(metadata)) request.header.set(name, value);
          request.header.set('signpost-account', byConnect.accountId);
          return proceed(request);
        },
      ],
    });
    const connect = createClient(CodesService, transport);
    calls[`Connect (${how})`] = () => connect.createCode({ targetUrl: TARGET });
    const grpc = grpcClient(signpost.coreAddress, { ...metadata, 'signpost-account': byGrpc.accountId });
    calls[`gRPC (${how})`] = () => grpc(CodesService.method.createCode, { targetUrl: TARGET });
  }
  return calls;
}

/** Every scan was counted exactly once. */
async function expectLedger(signpost: Signpost, answered: number): Promise<void> {
  const audit = () =>
    internal(signpost, ScansService).auditScans({
      from: timestampFromMs(Date.now() - 86_400_000),
      to: timestampFromMs(Date.now()),
    });
  await expect.poll(async () => (await audit()).waiting, EVENTUALLY).toBe(0n);
  const ledger = await audit();
  expect([ledger.answered, ledger.spooled, ledger.recorded, ledger.counted]).toEqual(Array(4).fill(BigInt(answered)));
  expect(ledger.differences).toEqual([]);
}
