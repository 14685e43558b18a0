/**
 * Asks for random codes over keep-alive connections, one request at a time on each, and prints what came of it as JSON.
 * A process of its own, so that it can have a core of its own.
 *
 *   node test/bench/load.ts '{"port": 8080, "connections": 64, "seconds": 5, "rate": 20000, "codes": "/tmp/codes"}'
 *
 * With a rate, requests are due at even intervals and a latency counts from when its request was due, so that a server
 * that stalls is charged for everything that had to wait. Without one each answer is followed by the next request.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { requestHead } from './phone.ts';

/** What to ask for. */
export interface Load {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second; as many as go when it is missing. */
  readonly rate?: number;
  /** A file with a short code on each line. */
  readonly codes: string;
}

/** What a load came to; latencies in ms. Rate and latencies are of what came after the first second. */
export interface Measured {
  readonly requests: number;
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  /** Answers that were no 302. */
  readonly wrong: number;
}

const { port, connections, seconds, rate, codes: file } = JSON.parse(process.argv[2] ?? '{}') as Load;
const codes = readFileSync(file, 'latin1').split('\n');
const latencies: number[] = [];
const clock = new Int32Array(new SharedArrayBuffer(4));
/** Between looks at what has come and what is due, in ms: as exact as latencies are. */
const PAUSE_MS = 0.02;
/** What comes before counts nothing: both sides compile their code first. */
const WARM_MS = 1_000;
/** When the requests were due that no connection was free for. */
const waiting: number[] = [];
const free: ((due: number) => void)[] = [];
let answered = 0;
let wrong = 0;

await Promise.all(Array.from({ length: connections }, open));
const start = performance.now();
const counted = start + WARM_MS;
const end = counted + seconds * 1_000;
if (rate === undefined) {
  for (const send of free.splice(0)) send(performance.now());
  while (performance.now() < end) await turn();
} else {
  for (let due = start; due < end; ) {
    for (const now = performance.now(); due <= now; due += 1_000 / rate) {
      const send = free.pop();
      if (send) send(due);
      else waiting.push(due);
    }
    await turn();
    // Turning without a pause would take the core from whoever shares it.
    Atomics.wait(clock, 0, 0, PAUSE_MS);
  }
}
latencies.sort((one, other) => one - other);
const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
const measured: Measured = {
  requests: answered,
  rate: latencies.length / ((performance.now() - counted) / 1_000),
  p50: at(0.5),
  p99: at(0.99),
  wrong,
};
console.log(JSON.stringify(measured));
process.exit();

async function open(): Promise<void> {
  const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  let dueAt = 0;
  let answer = '';
  const send = (due: number) => {
    dueAt = due;
    const code = codes[Math.floor(Math.random() * codes.length)] ?? '';
    socket.write(requestHead(code), 'latin1');
  };
  socket.setEncoding('latin1').on('data', (text: string) => {
    answer += text;
    const head = answer.indexOf('\r\n\r\n');
    const body = Number(/^content-length: (\d+)/im.exec(answer)?.[1] ?? 0);
    if (head < 0 || answer.length < head + 4 + body) return;
    if (!answer.startsWith('HTTP/1.1 302 ')) wrong++;
    answer = '';
    answered++;
    const now = performance.now();
    if (dueAt >= counted) latencies.push(now - dueAt);
    if (rate === undefined) send(now);
    else {
      const due = waiting.shift();
      if (due === undefined) free.push(send);
      else send(due);
    }
  });
  socket.once('close', () => {
    throw new Error('The server closed a connection.');
  });
  free.push(send);
}
