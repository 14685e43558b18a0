/**
 * A process that attacks as fast as it can, from one address or from many, until it is killed.
 *
 *   node test/bench/attacker.ts '{"kind": "unknown codes", "port": 8080, "addresses": 1}'
 */
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

/** The kind of attack, on the gateway's port, or on one of the core's for those that begin with `core`. */
export type AttackKind =
  | 'reset after CONNECT'
  | 'garbage'
  | 'made-up keys'
  | 'large bodies'
  | 'unknown codes'
  | 'slow headers'
  | 'core: gzip by Connect'
  | 'core: gzip by gRPC';

export interface Attack {
  readonly kind: AttackKind;
  readonly port: number;
  /** The number of addresses of the loopback network that it uses. */
  readonly addresses: number;
}

const CONCURRENCY = 64;
const SLOW_CONNECTIONS = 1_000;
const CODE = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const KEY = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const { kind, port, addresses } = JSON.parse(process.argv[2] ?? '{}') as Attack;

process.once('disconnect', () => process.exit());

const randomText = (alphabet: string, length: number) =>
  Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
const key = () => `sk_live_${randomText(KEY, 43)}`;
const large = `{"rows":[${'{"target_url":1},'.repeat(200_000)}{}]}`;
const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024, Buffer.of(0x0a, 0)), { level: 9 });
const frame = Buffer.concat([Buffer.of(1), Buffer.alloc(4), bomb]);
frame.writeUInt32BE(bomb.length, 1);
const METHOD = '/signpost.batches.v1.BatchesService/CreateBatch';

const ATTACKS: Readonly<Record<AttackKind, () => Promise<void>>> = {
  async 'reset after CONNECT'() {
    const socket = await open();
    socket.write('CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n');
    await sleep(1);
    socket.resetAndDestroy();
  },
  async garbage() {
    const socket = await open();
    socket.end(randomBytes(randomInt(1, 4_096)));
    await closed(socket);
  },
  'made-up keys': () =>
    requests(() => `GET /api/v1/qr-codes HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key()}\r\n\r\n`),
  'large bodies': () => requests(() => `${head(`/api/v1/batches`, key(), large.length)}${large}`),
  'unknown codes': () => requests(() => `GET /r/${randomText(CODE, 7)} HTTP/1.1\r\nhost: localhost\r\n\r\n`),
  async 'slow headers'() {
    const socket = await open();
    socket.write('GET /r/');
    const dripping = setInterval(() => socket.write('a'), 1_000);
    await closed(socket);
    clearInterval(dripping);
  },
  'core: gzip by Connect': () =>
    requests(() =>
      Buffer.concat([
        Buffer.from(head(METHOD, key(), bomb.length, 'content-type: application/proto\r\ncontent-encoding: gzip\r\n')),
        bomb,
      ]),
    ),
  async 'core: gzip by gRPC'() {
    const session = connectHttp2(`http://127.0.0.1:${port}`, { localAddress: address() } as object);
    session.on('error', () => undefined);
    while (!session.destroyed && !session.closed) {
      const stream = session.request({
        ':method': 'POST',
        ':path': METHOD,
        'content-type': 'application/grpc',
        'grpc-encoding': 'gzip',
        te: 'trailers',
        authorization: `Bearer ${key()}`,
      });
      stream.on('error', () => undefined).resume();
      stream.end(frame);
      await once(stream, 'close').catch(() => undefined);
    }
  },
};

async function attack(): Promise<never> {
  for (;;) {
    await ATTACKS[kind]().catch(() => undefined);
    await turn();
  }
}

await Promise.all(Array.from({ length: kind === 'slow headers' ? SLOW_CONNECTIONS : CONCURRENCY }, attack));

function head(path: string, token: string, length: number, more = ''): string {
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n${more}content-length: ${length}\r\n\r\n`;
}

function address(): string {
  return addresses === 1 ? '127.0.1.1' : `127.0.1.${randomInt(1, Math.min(addresses, 254) + 1)}`;
}

async function open(): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: address(), noDelay: true });
  socket.on('error', () => undefined).resume();
  await once(socket, 'connect');
  return socket;
}

async function closed(socket: Socket): Promise<void> {
  if (!socket.destroyed) await once(socket, 'close').catch(() => undefined);
}

/** Sends requests on a connection until it is closed, each after the first bytes of the previous response. */
async function requests(request: () => string | Buffer): Promise<void> {
  const socket = await open();
  let answered: (() => void) | undefined;
  socket.on('data', () => answered?.()).on('close', () => answered?.());
  while (!socket.destroyed) {
    const { promise, resolve } = Promise.withResolvers<void>();
    answered = resolve;
    socket.write(request());
    await promise;
  }
}
