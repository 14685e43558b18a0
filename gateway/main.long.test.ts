import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, BoundSocket, connect } from 'node:net';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import pg from 'pg';
import { pino } from 'pino';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { encodeId, newUuid } from '../common/contract/ids.ts';
import type { Log } from '../common/log/log.ts';
import { openLog } from '../common/log/open.ts';
import { ROUTES, SCANS, TOPICS } from '../common/log/topics.ts';
import { freePort } from '../local/free-port.ts';
import { AccountsService, Plan } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Answer, RouteSchema } from '../proto/gen/signpost/routes/v1/route_pb.ts';
import { ScanSchema } from '../proto/gen/signpost/scans/v1/scan_pb.ts';
import { newShortCode } from '../src/codes/create/short-code.ts';
import { startServing } from '../src/rpc/serve.fixture.ts';
import { openTls } from '../src/rpc/tls.ts';
import { childrenOf, statusOf } from '../test/faults/visitors.ts';
import { newAuthority } from '../test/harness/certificates.ts';
import { freshDatabase } from '../test/harness/database.ts';
import type { MessageToMain } from './process/messages.ts';
import { frame } from './redirect/spool/frame.fixture.ts';
import { readSpool } from './redirect/spool/read-spool.ts';

const logger = pino({ level: 'silent' });
const EVENTUALLY = { interval: 50 };

/** A key that is formed like one. */
const MADE_UP = `Bearer sk_live_${'a'.repeat(43)}`;

let databaseUrl: string;
let folder: string;
let port: number;
/** Creates a code in Postgres that is in no route table. */
let code: { id: string; path: string };

beforeAll(async () => {
  ({ url: databaseUrl } = await freshDatabase());
});
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signpost-gateway-'));
  port = await freePort();
  const [id, accountId] = [newUuid(), newUuid()];
  code = { id: encodeId('qr', id), path: `/r/${newShortCode()}` };
  await query(`insert into accounts (id, name, plan) values ($1, 'Test', 'business')`, accountId);
  await query(
    `insert into codes (id, account_id, type, short_code, target_url) values ($1, $2, 'dynamic', $3, 'https://a.example')`,
    id,
    accountId,
    code.path.slice('/r/'.length),
  );
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Gateway {
  readonly process: ChildProcess;
  /** Its standard error; resolves when it has exited. */
  readonly ended: Promise<{ code: number | null; stderr: string }>;
}

function start(env: Record<string, string> = {}): Gateway {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, ['gateway/main.ts'], {
    env: {
      PATH,
      HOME,
      NODE_COMPILE_CACHE,
      PORT: String(port),
      DATA_DIR: join(folder, 'data'),
      DATABASE_URL: databaseUrl,
      GATEWAY_WORKERS: '2',
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stderr = '';
  child.stderr?.on('data', (text) => {
    stderr += text;
  });
  return { process: child, ended: once(child, 'close').then(([code]) => ({ code, stderr })) };
}

async function startReady(env?: Record<string, string>): Promise<Gateway> {
  const gateway = start(env);
  const [message] = await Promise.race([
    once(gateway.process, 'message'),
    gateway.ended.then(({ stderr }) => Promise.reject(new Error(stderr))),
  ]);
  expect(message).toEqual({ type: 'ready', port });
  return gateway;
}

async function query(text: string, ...values: unknown[]): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(text, values);
  await client.end();
}

function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, { redirect: 'manual', headers });
}

async function degraded(): Promise<unknown> {
  return ((await (await get('/readyz')).json()) as { degraded: unknown }).degraded;
}

async function log(): Promise<Log> {
  const opened = await openLog({ kafkaBrokers: [], databaseUrl, clientId: 'test', logger });
  onTestFinished(() => opened.close());
  return opened;
}

/** The ids of this test code's scans in the log. */
function follow(opened: Log): Set<string> {
  const ids = new Set<string>();
  const subscription = opened.follow({
    topic: SCANS.name,
    from: new Map(),
    handle(records) {
      const scans = records.map(({ value }) => scanOf(value ?? new Uint8Array()));
      for (const scan of scans) if (scan?.codeId === code.id) ids.add(scan.id);
    },
  });
  onTestFinished(() => subscription.stop());
  return ids;
}

/** Undefined for a value that is not a scan, which the recorder makes a dead letter. */
function scanOf(bytes: Uint8Array): { id: string; codeId: string } | undefined {
  try {
    const { id, codeId } = fromBinary(ScanSchema, bytes);
    return { id: Buffer.from(id).toString('hex'), codeId };
  } catch {
    return undefined;
  }
}

test('kill -9 loses no answered scan: they stay on disk, and are published after the next start', async () => {
  // Without topics, scans can't be published.
  await query('delete from log_topics where name = $1', SCANS.name);
  const gateway = await startReady();
  let answered = 0;
  const visitors = Array.from({ length: 16 }, async () => {
    for (;;) {
      const answer = await get(code.path);
      if (answer.status === 302) answered++;
    }
  });
  await expect.poll(() => answered, EVENTUALLY).toBeGreaterThan(500);
  gateway.process.kill('SIGKILL');
  await Promise.allSettled(visitors);
  await gateway.ended;

  // Not forgotten, so that they stay; so few are one batch each.
  const spools = readdirSync(join(folder, 'data/spool'));
  expect(spools).toHaveLength(2);
  const batches = spools.map((spool) => readSpool(join(folder, 'data/spool', spool), logger).next());
  const ids = new Set(batches.flatMap((batch) => batch?.payloads ?? []).map((payload) => scanOf(payload)?.id));
  expect(ids.size).toBeGreaterThanOrEqual(answered);

  const opened = await log();
  await opened.ensureTopics(TOPICS);
  const arrived = follow(opened);
  await startReady();
  await expect.poll(() => arrived, EVENTUALLY).toEqual(ids);
});

test('printed codes resolve after a start without Postgres, log and core, and their scans arrive later', async () => {
  const opened = await log();
  await opened.ensureTopics(TOPICS);
  const first = await startReady();
  expect((await get(code.path)).status).toBe(302);
  first.process.kill('SIGKILL');
  await first.ended;

  const alone = await startReady({
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing',
    CORE_ADDRESS: '127.0.0.1:1',
  });
  const arrived = follow(opened);
  expect((await get(code.path)).status).toBe(302);
  expect((await get('/r/gfedcba')).status).toBe(503);
  expect((await get('/api/v1/qr-codes', { authorization: MADE_UP })).status).toBe(503);
  expect((await get('/api/v1/qr-codes')).status).toBe(401);
  const ready = await get('/readyz');
  expect(ready.status).toBe(200);
  await expect.poll(degraded, EVENTUALLY).toEqual(['api', 'log', 'shipping']);
  alone.process.kill('SIGTERM');
  expect((await alone.ended).code).toBe(0);

  await startReady();
  await expect.poll(() => arrived.size, EVENTUALLY).toBe(2);
});

test('the spool of an ended worker is shipped once and removed from disk, and does not block others', async () => {
  const opened = await log();
  await opened.ensureTopics(TOPICS);
  const arrived = follow(opened);
  // As after kill -9: open, and torn at its end. Then a payload that is not a scan, and an unreadable segment.
  const spool = join(folder, 'data/spool/7');
  mkdirSync(join(spool, '000000000000002.scans'), { recursive: true });
  const scan = () => frame(toBinary(ScanSchema, create(ScanSchema, { id: randomBytes(16), codeId: code.id })));
  writeFileSync(join(spool, '000000000000001.open'), Buffer.concat([scan(), frame(Buffer.from([255])), scan()]));
  writeFileSync(join(spool, '000000000000003.open'), Buffer.concat([scan(), scan().subarray(0, 20)]));
  await startReady({ GATEWAY_WORKERS: '1' });
  await expect.poll(() => arrived.size, EVENTUALLY).toBe(3);
  await expect.poll(() => readdirSync(spool), EVENTUALLY).toEqual(['000000000000002.scans']);
});

test('a worker drops held scans only when that offer was published, and not for an earlier offer', async () => {
  mkdirSync(join(folder, 'data'));
  writeFileSync(join(folder, 'data/spool'), '');
  using socket = new BoundSocket({ port, host: '127.0.0.1' });
  const worker = fork('gateway/worker.ts', ['0', 'a-spool'], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      PORT: String(port),
      DATA_DIR: join(folder, 'data'),
      DATABASE_URL: databaseUrl,
    },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc', socket.fd()],
  });
  onTestFinished(() => void worker.kill('SIGKILL'));
  let received: Partial<Record<MessageToMain['type'], MessageToMain>> = {};
  worker.on('message', (message: MessageToMain) => {
    received[message.type] = message;
  });
  const held = () => {
    const { status } = received;
    return status?.type === 'status' && 'worker' in status ? status.worker.spool.held : undefined;
  };
  await expect.poll(() => received.ready, EVENTUALLY).toBeDefined();
  expect((await get(code.path)).status).toBe(302);
  await expect.poll(() => received.offered, EVENTUALLY).toBeDefined();
  const { offer } = received.offered as MessageToMain & { type: 'offered' };
  worker.send({ type: 'published', offer: 'one of a worker before it' });
  received = {};
  await expect.poll(held, EVENTUALLY).toBeGreaterThan(0);
  worker.send({ type: 'published', offer });
  await expect.poll(held, EVENTUALLY).toBe(0);
});

test('SIGTERM: a scan that was just answered is in the log when the process has exited', async () => {
  const opened = await log();
  await opened.ensureTopics(TOPICS);
  const arrived = follow(opened);
  const gateway = await startReady();
  await Promise.all(Array.from({ length: 20 }, () => get(code.path)));
  gateway.process.kill('SIGTERM');
  expect(await gateway.ended).toEqual({ code: 0, stderr: '' });
  await expect.poll(() => arrived.size, EVENTUALLY).toBe(20);
});

/** The address of a core that answers no call. */
async function hangingCore(): Promise<string> {
  const core = createHttp2Server().on('stream', (stream) => void stream.on('error', () => {}));
  core.listen(0, '127.0.0.1');
  await once(core, 'listening');
  onTestFinished(() => void core.close());
  return `127.0.0.1:${(core.address() as AddressInfo).port}`;
}

describe('SIGTERM: a connection with requests in progress is closed after the last response:', () => {
  const hanging = `GET /api/v1/tags HTTP/1.1\r\nhost: a\r\nauthorization: ${MADE_UP}\r\n\r\n`;

  test.each([
    ['a lone one', hanging, /^HTTP\/1.1 503 .*\r\nconnection: close\r\n/is],
    ['one that was ready before', `${hanging}GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n`, /503 .*"alive"}$/s],
  ])('%s', async (_, requests, answers) => {
    const gateway = await startReady({
      GATEWAY_WORKERS: '1',
      CORE_ADDRESS: await hangingCore(),
      CORE_TIMEOUT_MS: '3000',
    });
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(requests);
    await sleep(500);
    gateway.process.kill('SIGTERM');
    expect(await text(socket)).toMatch(answers);
    expect((await gateway.ended).code).toBe(0);
  });
});

test('a body that waits for a core that hangs is a 503', async () => {
  await startReady({ GATEWAY_WORKERS: '1', CORE_ADDRESS: await hangingCore(), CORE_TIMEOUT_MS: '3000' });
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  const head = `POST /api/v1/batches HTTP/1.1\r\nhost: a\r\nauthorization: ${MADE_UP}\r\ncontent-length: 10\r\n\r\n`;
  socket.write(`${head}{`);
  expect(await text(socket)).toMatch(/^HTTP\/1.1 503 /);
});

test('changes arrive by the topic, and a recreated topic is read from its beginning', async () => {
  const opened = await log();
  await opened.ensureTopics(TOPICS);
  const announce = (version: bigint, targetUrl: string) => {
    const value = {
      shortCode: 'hhhhhhh',
      codeId: encodeId('qr', newUuid()),
      accountId: encodeId('acct', newUuid()),
      answer: Answer.REDIRECT,
      targetUrl,
    };
    const route = create(RouteSchema, { version, entry: { case: 'code', value } });
    return opened.publish(ROUTES.name, [{ key: 'code:hhhhhhh', value: toBinary(RouteSchema, route) }]);
  };
  const target = async () => (await get('/r/hhhhhhh')).headers.get('location');
  const first = await startReady();
  await announce(1n, 'https://one.example/');
  await announce(2n, 'https://two.example/');
  await expect.poll(target, EVENTUALLY).toBe('https://two.example/');
  first.process.kill('SIGTERM');
  await first.ended;

  await query('delete from log_records where topic = $1', ROUTES.name);
  await query('update log_partitions set next = 0 where topic = $1', ROUTES.name);
  await announce(3n, 'https://three.example/');
  await startReady();
  await expect.poll(target, EVENTUALLY).toBe('https://three.example/');
});

test('health: alive, and ready while scans can be answered and recorded', async () => {
  await (await log()).ensureTopics(TOPICS);
  await startReady();
  expect(await (await get('/healthz')).json()).toEqual({ status: 'alive' });
  await expect.poll(async () => (await get('/readyz')).status, EVENTUALLY).toBe(200);
  expect(await (await get('/readyz')).json()).toMatchObject({ status: 'ready' });
  await expect.poll(degraded, EVENTUALLY).toEqual(['api']);
  // Measured by one process and reported by another.
  const age = async () => ((await (await get('/readyz')).json()) as { routes: { age_ms: number } }).routes.age_ms;
  await expect.poll(age, EVENTUALLY).toSatisfy((ms) => typeof ms === 'number' && ms >= 0 && ms < 10_000);
});

test('not ready until the topic of routes was read once, and then without the log too', async () => {
  const withoutLog = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing' };
  const stopped = async (gateway: Gateway) => {
    gateway.process.kill('SIGTERM');
    await gateway.ended;
  };
  const first = await startReady(withoutLog);
  const unready = await get('/readyz');
  expect(unready.status).toBe(503);
  expect(((await unready.json()) as { status: string }).status).toContain('custom domains may be missing');
  await stopped(first);

  await (await log()).ensureTopics(TOPICS);
  const second = await startReady();
  await expect.poll(async () => (await get('/readyz')).status, EVENTUALLY).toBe(200);
  await stopped(second);

  await startReady(withoutLog);
  expect((await get('/readyz')).status).toBe(200);
});

test('a worker that is restarted while the gateway drains is not ready either', async () => {
  const { process: gateway } = await startReady({ GATEWAY_WORKERS: '1', DRAIN_SECONDS: '10' });
  const { pid = 0 } = gateway;
  gateway.kill('SIGTERM');
  await expect.poll(async () => (await get('/readyz')).status, EVENTUALLY).toBe(503);
  const [victim = 0] = await childrenOf({ pid }, 'gateway/worker.ts');
  process.kill(victim, 'SIGKILL');
  const others = async () => (await childrenOf({ pid }, 'gateway/worker.ts')).filter((worker) => worker !== victim);
  await expect.poll(others, EVENTUALLY).toHaveLength(1);
  expect((await get('/readyz')).status).toBe(503);
});

test('workers come before the carrier while CPU time is scarce', async () => {
  const { pid = 0 } = (await startReady()).process;
  const prioritiesOf = async (program: string) =>
    new Set((await childrenOf({ pid }, program)).map((child) => getPriority(child)));
  expect(await prioritiesOf('gateway/worker.ts')).toEqual(new Set([getPriority()]));
  expect(await prioritiesOf('gateway/carrier.ts')).toEqual(new Set([Math.max(10, getPriority())]));
});

test('a gateway that was killed while a worker was starting can be started again at once', async () => {
  const killed = await startReady();
  const pid = killed.process.pid ?? 0;
  const workers = await childrenOf({ pid }, 'gateway/worker.ts');
  process.kill(workers[0] ?? 0, 'SIGKILL');
  // Its successor holds the port, but has neither locked its file nor noticed anything.
  await expect.poll(async () => (await childrenOf({ pid }, 'gateway/worker.ts')).length, EVENTUALLY).toBe(2);
  const successor = (await childrenOf({ pid }, 'gateway/worker.ts')).find((worker) => !workers.includes(worker)) ?? 0;
  process.kill(successor, 'SIGSTOP');
  onTestFinished(() => {
    try {
      process.kill(successor, 'SIGKILL');
    } catch {
      // It has exited.
    }
  });
  const exited = once(killed.process, 'exit');
  killed.process.kill('SIGKILL');
  await exited;
  const restarted = startReady();
  await sleep(3_000);
  process.kill(successor, 'SIGCONT');
  await restarted;
  expect((await get(code.path)).status).toBe(302);
});

describe.runIf(process.platform === 'linux')('while no process can be started', () => {
  /** The main process of a gateway, which has just lost a process and has no file descriptor for another one. */
  async function startShort(program: string, signal: NodeJS.Signals): Promise<Gateway & { readonly pid: number }> {
    const gateway = await startReady();
    const { pid = 0 } = gateway.process;
    expect((await get(code.path)).status).toBe(302);
    const [victim = 0] = await childrenOf({ pid }, program);
    limitDescriptors(pid, 0);
    process.kill(victim, signal);
    // Longer than two attempts to start another one.
    await sleep(2_500);
    expect(await childrenOf({ pid }, 'gateway/')).toHaveLength(2);
    return { ...gateway, pid };
  }

  /** Unlike a limit on processes, it holds for root too. */
  function limitDescriptors(pid: number, most: number): void {
    execFileSync('prlimit', ['--pid', String(pid), `--nofile=${most}:`]);
  }

  test.each([
    ['worker', 'SIGKILL'],
    // After a crash the route table is checked, by a process that can't be started either.
    ['worker', 'SIGSEGV'],
    ['carrier', 'SIGKILL'],
  ] as const)('a gateway without a %s, ended by %s, continues, and starts it once it can', async (name, signal) => {
    const program = `gateway/${name}.ts`;
    const { pid } = await startShort(program, signal);
    // Those that the kernel assigns to the missing worker wait for it.
    const scan = () => statusOf(`http://127.0.0.1:${port}${code.path}`);
    await expect.poll(() => Promise.any(Array.from({ length: 8 }, scan)), EVENTUALLY).toBe(302);
    limitDescriptors(pid, 1_024);
    await expect.poll(() => childrenOf({ pid }, 'gateway/'), EVENTUALLY).toHaveLength(3);
    // The new worker has its part of the port before it answers.
    const scans = () => Promise.all(Array.from({ length: 8 }, scan));
    await expect.poll(scans, EVENTUALLY).toEqual(Array(8).fill(302));
  });

  test.each(['SIGKILL', 'SIGSEGV'] as const)(
    'a gateway without a worker, ended by %s, stops as always',
    async (signal) => {
      const gateway = await startShort('gateway/worker.ts', signal);
      gateway.process.kill('SIGTERM');
      expect(await gateway.ended).toEqual({ code: 0, stderr: '' });
    },
  );
});

describe('a start that cannot succeed ends with one sentence and code 1:', () => {
  async function expectSentence(env: Record<string, string>, sentence: string): Promise<void> {
    expect(await start(env).ended).toEqual({ code: 1, stderr: `${sentence}\n` });
  }

  test('invalid variables', async () => {
    await expectSentence(
      {
        PORT: 'http',
        DATABASE_URL: '',
        CORE_ADDRESS: 'core:99999',
        TRUST_PROXY: '10.0.0.0/8,999.0.0.1',
        COUNTRY_HEADER: 'not a header',
      },
      'PORT must be a port. DATABASE_URL is needed: a Postgres address. ' +
        'CORE_ADDRESS must be host:port; several are separated by commas. ' +
        'TRUST_PROXY must be an address or a network in CIDR notation; several are separated by commas. ' +
        'COUNTRY_HEADER must be the name of a header.',
    );
  });

  test('LISTEN_HOST is an address of another machine', async () => {
    await expectSentence(
      { LISTEN_HOST: '192.0.2.1' },
      'LISTEN_HOST is not an address of this machine (EADDRNOTAVAIL).',
    );
  });

  test('another gateway with its own folder uses the port, or binds it at the same time', async () => {
    const taken = `PORT ${port} can't be listened on: it is in use.\n`;
    const both = [start(), start({ DATA_DIR: join(folder, 'other') })];
    const refused = await Promise.race(both.map(({ ended }) => ended));
    expect(refused).toEqual({ code: 1, stderr: taken });
    await expect.poll(async () => (await get('/healthz').catch(() => undefined))?.status, EVENTUALLY).toBe(200);
    expect(await start({ DATA_DIR: join(folder, 'third') }).ended).toEqual({ code: 1, stderr: taken });
  });

  test('another gateway uses DATA_DIR, and after kill -9 DATA_DIR is free', async () => {
    const sentence = `Another gateway is using DATA_DIR ${join(folder, 'data')}: each needs a folder of its own.`;
    const env = { PORT: String(await freePort()) };
    const first = await startReady();
    await expectSentence(env, sentence);
    expect((await get(code.path)).status).toBe(302);
    first.process.kill('SIGSTOP');
    await expectSentence(env, sentence);
    first.process.kill('SIGKILL');
    await first.ended;
    const second = await startReady();
    await expectSentence(env, sentence);
    second.process.kill('SIGTERM');
    expect(await second.ended).toEqual({ code: 0, stderr: '' });
    await startReady();
  });

  test('DATA_DIR is not a folder', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    await expectSentence({ DATA_DIR: file }, `DATA_DIR ${file} is not a folder (EEXIST).`);
  });

  test('COUNTRY_DATABASE does not exist', async () => {
    await expectSentence({ COUNTRY_DATABASE: '/no.mmdb' }, "COUNTRY_DATABASE /no.mmdb can't be read (ENOENT).");
  });
});

describe('CORE_CA', () => {
  test('the core is called over TLS, and only a core with a certificate from this CA', async () => {
    const authority = await newAuthority();
    const { certFile: cert, keyFile: key } = await authority.issue('core');
    const core = await startServing(openTls({ cert, key, clientCa: undefined }, logger));
    const accounts = createClient(
      AccountsService,
      createConnectTransport({
        baseUrl: `https://localhost:${core.connectPort}`,
        httpVersion: '1.1',
        nodeOptions: { ca: authority.cert },
      }),
    );
    const headers = { authorization: `Bearer ${core.tokens[0]}` };
    const { apiKey } = await accounts.createAccount({ name: 'A', plan: Plan.BUSINESS }, { headers });
    const list = () =>
      fetch(`http://127.0.0.1:${port}/api/v1/qr-codes`, { headers: { authorization: `Bearer ${apiKey}` } });
    // The certificate names both.
    for (const host of ['localhost', '127.0.0.1']) {
      const CORE_ADDRESS = `${host}:${core.grpcPort}`;
      const { process: gateway, ended } = await startReady({ CORE_ADDRESS, CORE_CA: authority.certFile });
      expect((await list()).status).toBe(200);
      // A gateway has no access of its own.
      expect((await fetch(`http://127.0.0.1:${port}/api/v1/qr-codes`)).status).toBe(401);
      gateway.kill('SIGKILL');
      await ended;
    }
    await startReady({ CORE_ADDRESS: `localhost:${core.grpcPort}`, CORE_CA: (await newAuthority()).certFile });
    expect((await list()).status).toBe(503);
  });

  test('a file that can’t be read is a sentence', async () => {
    const stderr = "CORE_CA /nowhere.pem can't be read (ENOENT).\n";
    expect(await start({ CORE_CA: '/nowhere.pem' }).ended).toEqual({ code: 1, stderr });
    const other = 'CORE_CA package.json must be a PEM file of certificates.\n';
    expect(await start({ CORE_CA: 'package.json' }).ended).toEqual({ code: 1, stderr: other });
  });
});
