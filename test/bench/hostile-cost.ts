/**
 * What each kibibyte from a caller without a valid key costs: CPU time and memory, for every RPC over both ports and
 * for every operation of the REST API.
 *
 *   node test/bench/hostile-cost.ts [requests]      default: 300 for each
 *
 * Each request has a made-up key of the right format and a body of about 1 KiB: gzip that inflates to a mebibyte of
 * empty rows for RPCs, rows in JSON for REST. CPU time is that of core, gateway and Postgres together.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { DescMethod } from '@bufbuild/protobuf';
import { RPC_SERVICES } from '../harness/rpc-services.ts';
import { median } from './median.ts';
import { startPlatform } from './platform.ts';
import { childrenOf, memoryOf } from './process-tree.ts';

const REQUESTS = Number(process.argv[2] ?? 300);
const CONCURRENCY = 8;
/** The timeout of a response, in ms: `Watch` of the health service never ends by itself. */
const TIMEOUT_MS = 1_000;
/** A request that an unauthenticated caller can send repeatedly. `send` returns the number of bytes sent. */
interface Attempt {
  readonly name: string;
  readonly protocol: string;
  send(): Promise<number>;
}

/** Idle connections by port, and the connection for native gRPC. */
const idleSockets = new Map<number, Socket[]>();
let session: ReturnType<typeof connectHttp2> | undefined;

const MADE_UP_KEY = `sk_live_${'Ab3'.repeat(14)}x`;
/** A mebibyte of empty messages in the first repeated field, or in field 1. */
const bombFor = (method: DescMethod) => {
  const field = method.input.fields.find(({ fieldKind }) => fieldKind === 'list');
  const tag = Buffer.of(((field?.number ?? 1) << 3) | 2, 0);
  return gzipSync(Buffer.alloc(1024 * 1024, tag), { level: 9 });
};
const rowsInJson = `{"target_url":1,"rows":[${'{},'.repeat(330)}{}]}`;

await using platform = await startPlatform();
const { apiKey } = await platform.newAccount();
const gatewayPort = Number(new URL(platform.url).port);
const attempts = [...(await restAttempts()), ...RPC_SERVICES.flatMap(({ methods }) => methods.flatMap(rpcAttempts))];

interface Cost {
  /** CPU time per kibibyte, in ms. */
  readonly cpuMs: number;
  readonly peakMib: number;
}

/** By operation, and then by protocol. */
const costs = new Map<string, Map<string, Cost>>();
for (const { name, protocol, send } of attempts) {
  const pids = [platform.pids.core, platform.pids.gateway].flatMap(tree);
  const before = memory(pids, 'now');
  const start = cpuMs();
  let bytes = 0;
  const lanes = Array.from({ length: CONCURRENCY }, async () => {
    for (let sent = 0; sent < REQUESTS / CONCURRENCY; sent++) bytes += await send();
  });
  await Promise.all(lanes);
  process.stderr.write('.');
  const cost = { cpuMs: (cpuMs() - start) / (bytes / 1_024), peakMib: Math.round(memory(pids, 'peak') - before) };
  const protocols = costs.get(name) ?? new Map();
  costs.set(name, protocols.set(protocol, cost));
}
console.log();
printTable('REST operation', ['REST'], ['ms of CPU a KiB', 'peak MiB']);
printTable(
  'RPC',
  ['Connect', 'native gRPC'],
  ['Connect: ms of CPU a KiB', 'peak MiB', 'native gRPC: ms of CPU a KiB', 'peak MiB'],
);
for (const protocol of ['REST', 'Connect', 'native gRPC']) {
  const all = [...costs.values()].flatMap((protocols) => protocols.get(protocol)?.cpuMs ?? []);
  console.log(`${protocol}: median ${median(all).toFixed(1)} ms, most ${Math.max(...all).toFixed(1)} ms a KiB`);
}
await platform[Symbol.asyncDispose]();
process.exit();

/** Prints the operations called over these protocols as a Markdown table. */
function printTable(things: string, protocols: readonly string[], columns: readonly string[]): void {
  const row = (cells: readonly string[]) => console.log(`| ${cells.join(' | ')} |`);
  row([things, ...columns]);
  row(['---', ...columns.map(() => '---')]);
  for (const [name, by] of costs) {
    const measured = protocols.flatMap((protocol) => by.get(protocol) ?? []);
    if (measured.length === 0) continue;
    row([`\`${name}\``, ...measured.flatMap(({ cpuMs, peakMib }) => [cpuMs.toFixed(1), String(peakMib)])]);
  }
  console.log();
}

async function restAttempts(): Promise<Attempt[]> {
  const answer = await fetch(`${platform.url}/api/v1/openapi`, { headers: { authorization: `Bearer ${apiKey}` } });
  const { paths } = (await answer.json()) as { paths: Record<string, Record<string, unknown>> };
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => {
      const id = path.includes('batches') ? 'batch_01h455vb4pex5vsknk084sn02q' : 'qr_01h455vb4pex5vsknk084sn02q';
      const url = `${path.startsWith('/api') ? '' : '/api/v1'}${path.replace('{id}', id)}`;
      const head = `${method.toUpperCase()} ${url} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${MADE_UP_KEY}\r\n`;
      const request = `${head}content-length: ${rowsInJson.length}\r\n\r\n${rowsInJson}`;
      return { name: `${method.toUpperCase()} ${path}`, protocol: 'REST', send: () => overHttp1(gatewayPort, request) };
    }),
  );
}

function rpcAttempts(method: DescMethod): Attempt[] {
  const name = `${method.parent.name}/${method.name}`;
  const path = `/${method.parent.typeName}/${method.name}`;
  const bomb = bombFor(method);
  const unary = method.methodKind === 'unary';
  const frame = Buffer.concat([Buffer.of(1), Buffer.alloc(4), bomb]);
  frame.writeUInt32BE(bomb.length, 1);
  const body = unary ? bomb : frame;
  const type = unary
    ? 'content-type: application/proto\r\ncontent-encoding: gzip'
    : 'content-type: application/connect+proto\r\nconnect-content-encoding: gzip';
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${MADE_UP_KEY}\r\n${type}\r\ncontent-length: ${body.length}\r\n\r\n`;
  const request = Buffer.concat([Buffer.from(head), body]);
  return [
    { name, protocol: 'Connect', send: () => overHttp1(platform.ports.connect, request) },
    { name, protocol: 'native gRPC', send: () => overGrpc(path, frame) },
  ];
}

/** Sends a request on an idle connection, or a new one if there is none, and waits for the response. */
async function overHttp1(port: number, request: string | Buffer): Promise<number> {
  const idle = idleSockets.get(port) ?? [];
  idleSockets.set(port, idle);
  let socket = idle.pop();
  while (socket?.destroyed) socket = idle.pop();
  if (!socket) {
    socket = connect({ port, host: '127.0.0.1', noDelay: true }).on('error', () => undefined);
    await once(socket, 'connect');
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  let answer = '';
  let closing = false;
  const read = (chunk: Buffer) => {
    answer += chunk.toString('latin1');
    const end = answer.indexOf('\r\n\r\n');
    const head = answer.slice(0, Math.max(0, end)).toLowerCase();
    closing = head.includes('connection: close');
    const length = /\r\ncontent-length: (\d+)/.exec(head)?.[1];
    const chunked = head.includes('transfer-encoding: chunked') && answer.endsWith('0\r\n\r\n');
    if (end >= 0 && (chunked || (length !== undefined && answer.length >= end + 4 + Number(length)))) resolve();
  };
  socket.on('data', read).once('close', resolve);
  const timer = setTimeout(() => socket.destroy(), TIMEOUT_MS);
  socket.write(request);
  await promise;
  clearTimeout(timer);
  socket.off('data', read).off('close', resolve);
  if (closing) socket.destroy();
  else idle.push(socket);
  return request.length;
}

async function overGrpc(path: string, frame: Buffer): Promise<number> {
  if (!session || session.closed || session.destroyed) {
    session = connectHttp2(`http://127.0.0.1:${platform.ports.grpc}`);
    session.on('error', () => undefined);
  }
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    'grpc-encoding': 'gzip',
    te: 'trailers',
    authorization: `Bearer ${MADE_UP_KEY}`,
  });
  stream.on('error', () => undefined).resume();
  stream.end(frame);
  const timer = setTimeout(() => stream.close(), TIMEOUT_MS);
  await once(stream, 'close');
  clearTimeout(timer);
  return frame.length;
}

function tree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(tree)];
}

/** CPU time of core, gateway and Postgres so far, in ms, from the scheduler's figures in ns. */
function cpuMs(): number {
  const { core, gateway, postgres } = platform.pids;
  let ns = 0;
  for (const pid of [core, gateway, postgres].flatMap(tree)) {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      try {
        ns += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'latin1').split(' ', 1)[0]);
      } catch {
        // The thread has ended.
      }
    }
  }
  return ns / 1e6;
}

/** Resident memory in MiB: the current value (`now`, which also resets the peak), or the peak since then. */
function memory(pids: readonly number[], figure: 'now' | 'peak'): number {
  return pids.reduce((sum, pid) => {
    if (figure === 'now') writeFileSync(`/proc/${pid}/clear_refs`, '5');
    return sum + memoryOf(pid, 'VmHWM');
  }, 0);
}
