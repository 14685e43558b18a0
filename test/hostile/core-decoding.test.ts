import { readFileSync } from 'node:fs';
import { connect as http2Connect } from 'node:http2';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { beforeAll, describe, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { bearer } from '../../src/rpc/rpc-suite.fixture.ts';
import { cpuOf } from '../bench/cpu.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';
import { type RawProtocol, rawProtocols } from './rpc-call.ts';

/**
 * What one client can make a core do with a few kilobytes: nothing without a key, and little with one. On the first
 * version, 12 of the messages below took 2 to 4 s of CPU each and raised the core's memory from 200 MB to 4 GB.
 */
const NAMES = ['Connect over HTTP/1.1', 'Connect over HTTP/2', 'gRPC-Web', 'gRPC on the Connect port', 'native gRPC'];
const CREATE_BATCH = 'signpost.batches.v1.BatchesService/CreateBatch';
const ALMOST_8_MB = 8 * 1024 * 1024 - 1_024;

/** 4.2 million empty rows in 8 KB: two bytes each, and `[{},…` three. */
const ROWS = gzipSync(Buffer.alloc(ALMOST_8_MB, Buffer.of(0x0a, 0)));
const JSON_ROWS = gzipSync(`{"rows":[{}${',{}'.repeat(ALMOST_8_MB / 3 - 10)}]}`);
/** One row with 4.2 million empty tags. */
const TAGS = gzipSync(
  Buffer.concat([Buffer.of(0x0a, 0x80, 0x80, 0x80, 0x03), Buffer.alloc(6 * 1024 * 1024, Buffer.of(0x2a, 0))]),
);
const AT_ONCE = 12;
const MB = 1024 * 1024;

let signpost: Signpost;
let apiKey: string;
let protocols: Readonly<Record<string, RawProtocol>>;
let pid: number;
beforeAll(async () => {
  signpost = await startSignpost({ gateways: 0 });
  ({ apiKey } = await signpost.createAccount({ plan: Plan.ENTERPRISE }));
  protocols = rawProtocols(signpost);
  pid = signpost.cores[0]?.pid ?? 0;
});

const over = (name: string): RawProtocol => protocols[name] ?? Promise.reject;

/** What `work` costs the core: CPU in ms, and its peak memory so far in bytes. */
async function costOf(work: () => Promise<unknown>): Promise<{ cpu: number; memory: number }> {
  const before = cpuOf(pid);
  await work();
  const peak = /VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
  return { cpu: (cpuOf(pid) - before) / 1_000, memory: Number(peak) * 1_024 };
}

const callers = (call: () => Promise<unknown>) => Promise.all(Array.from({ length: AT_ONCE }, call));

describe.each(NAMES)('%s', (name) => {
  test.each([
    ['no key', undefined],
    ['a made-up key', `sk_live_${'a'.repeat(43)}`],
  ])('kilobytes that become millions of rows are rejected unread: %s', async (_, key) => {
    const call = { method: CREATE_BATCH, gzipped: ROWS, ...(key === undefined ? {} : { key }) };
    const { cpu } = await costOf(() =>
      callers(async () => expect((await over(name)(call)).code).toBe('unauthenticated')),
    );
    expect(cpu).toBeLessThan(1_500);
  });

  test('with a key they are rejected with a sentence and cost little', async () => {
    const { cpu, memory } = await costOf(() =>
      callers(async () => {
        expect(await over(name)({ method: CREATE_BATCH, gzipped: ROWS, key: apiKey })).toEqual({
          code: 'out_of_range',
          message: 'A message may contain at most 25000 rows; split it.',
        });
      }),
    );
    expect(cpu).toBeLessThan(5_000);
    expect(memory).toBeLessThan(700 * MB);
    expect(await over(name)({ method: CREATE_BATCH, gzipped: TAGS, key: apiKey })).toEqual({
      code: 'invalid_argument',
      message: 'The message contains more than 1200000 values.',
    });
  });

  test('messages without authentication must be small', async () => {
    const { code } = await over(name)({ method: 'grpc.health.v1.Health/Check', gzipped: gzipSync(named(16 * 1_024)) });
    expect(code).toBe('resource_exhausted');
    const refuse = { method: 'signpost.access.v1.AdmissionService/Refuse', gzipped: gzipSync(named(16 * 1_024)) };
    expect((await over(name)(refuse)).code).toBe('unauthenticated');
    expect((await over(name)({ ...refuse, key: apiKey })).code).toBe('resource_exhausted');
  });
});

/** A message whose first field is a string of this many bytes. */
function named(length: number): Buffer {
  return Buffer.concat([
    Buffer.of(0x0a, 0x80 | (length & 0x7f), 0x80 | ((length >> 7) & 0x7f), length >> 14),
    Buffer.alloc(length, 'x'),
  ]);
}

test.each(NAMES.slice(0, 4))('JSON with millions of rows is rejected before it is parsed: %s', async (name) => {
  const call = { method: CREATE_BATCH, gzipped: JSON_ROWS, json: true };
  expect((await over(name)(call)).code).toBe('unauthenticated');
  expect(await over(name)({ ...call, key: apiKey })).toEqual({
    code: 'invalid_argument',
    message: 'The message contains more than 1200000 values.',
  });
});

test.each([
  ['without a Host', 'POST /grpc.health.v1.Health/Check HTTP/1.0\r\n'],
  ['with a space in its Host', 'POST /grpc.health.v1.Health/Check HTTP/1.1\r\nhost: a b\r\n'],
  ['with a Host that is none', 'POST /grpc.health.v1.Health/Check HTTP/1.1\r\nhost: %%\r\n'],
  [
    'with an encoding that is no header',
    'GET /signpost.codes.v1.CodesService/GetCode?encoding=a%0ab HTTP/1.1\r\nhost: a\r\n',
  ],
])('a request %s is answered, and the core keeps running', async (_, head) => {
  const socket = connect(signpost.corePort, '127.0.0.1').setEncoding('latin1');
  const answered = new Promise<string>((resolve, reject) => {
    socket.once('data', resolve);
    socket.once('error', reject).once('close', () => reject(new Error('closed without an answer')));
  });
  socket.write(`${head}content-type: application/json\r\ncontent-length: 2\r\n\r\n{}`);
  expect(await answered).toMatch(/^HTTP\/1\.1 400 /);
  socket.destroy();
  expect(process.kill(pid, 0)).toBe(true);
});

test.each(['corePort', 'grpcPort'] as const)('one connection has a bounded number of calls: %s', async (port) => {
  const session = http2Connect(`http://127.0.0.1:${signpost[port]}`);
  await new Promise((resolve) => session.once('remoteSettings', resolve));
  expect(session.remoteSettings.maxConcurrentStreams).toBe(1_000);
  session.destroy();
});

test.each(['corePort', 'grpcPort'] as const)(
  'a client that opens calls and resets them is let go: %s',
  async (port) => {
    const session = http2Connect(`http://127.0.0.1:${signpost[port]}`).on('error', () => {});
    const closed = new Promise((resolve) => session.once('close', resolve));
    for (let calls = 0; !session.destroyed && !session.closed && calls < 20_000; calls++) {
      const path = '/signpost.codes.v1.CodesService/ListCodes';
      const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' });
      stream.on('error', () => {});
      stream.close(8);
      if (calls % 100 === 0) await new Promise(setImmediate);
    }
    await closed;
    const transport = createGrpcTransport({
      baseUrl: `http://127.0.0.1:${signpost[port]}`,
      interceptors: [bearer(apiKey)],
    });
    expect((await createClient(CodesService, transport).listCodes({})).codes).toEqual([]);
  },
);

test('2,500 made-up keys do not block accounts in the queue for images', async () => {
  const { apiKey: own } = await signpost.createAccount({ plan: Plan.ENTERPRISE });
  const as = (key: string) =>
    createGrpcTransport({ baseUrl: `http://127.0.0.1:${signpost.grpcPort}`, interceptors: [bearer(key)] });
  const { code } = await createClient(CodesService, as(own)).createCode({ targetUrl: 'https://example.com/' });
  const id = code?.id ?? '';
  const attackers = Array.from({ length: 5 }, (_, nth) => {
    // Several connections, with a different key for every call.
    const transport = (call: number) => `sk_live_${String(nth * 500 + call).padStart(43, '0')}`;
    const shared = createGrpcTransport({ baseUrl: `http://127.0.0.1:${signpost.grpcPort}` });
    const images = createClient(ImagesService, shared);
    return Promise.all(
      Array.from({ length: 500 }, (__, call) =>
        images.renderImage({ id }, { headers: { authorization: `Bearer ${transport(call)}` } }).then(
          () => 'drawn',
          (error: unknown) => readFailure(error).reason,
        ),
      ),
    );
  });
  const images = createClient(ImagesService, as(own));
  const drawn: unknown[] = [];
  for (let nth = 0; nth < 20; nth++) {
    drawn.push(
      await images.renderImage({ id, size: 512 }).then(
        ({ contentType }) => contentType,
        (error: unknown) => readFailure(error).reason,
      ),
    );
  }
  expect(new Set(drawn)).toEqual(new Set(['image/png']));
  expect(new Set((await Promise.all(attackers)).flat())).toEqual(new Set(['UNAUTHENTICATED']));
});
