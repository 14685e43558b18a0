/**
 * Requests random codes over keep-alive connections, one request at a time on each, and prints the result as JSON. It
 * runs in its own process, so that it can have its own CPU core.
 *
 *   node test/bench/load.ts '{"port": 8080, "connections": 64, "seconds": 5, "rate": 20000, "codes": "/tmp/codes"}'
 *
 * With a rate, requests are due at even intervals, and latencies are measured from when a request was due, so that
 * those of a stalled server include all waiting time. Without a rate, each response is followed by the next request.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { requestHead } from './phone.ts';

/** The parameters of a load. */
export interface Load {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second; as many as possible if omitted. */
  readonly rate?: number;
  /** A file with a short code on each line. */
  readonly codes: string;
}

/** The result of a load; latencies in ms. Rate and latencies exclude the first second. */
export interface Measured {
  readonly requests: number;
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  /** Responses other than 302. */
  readonly wrong: number;
}

const { port, connections, seconds, rate, codes: file } = JSON.parse(process.argv[2] ?? '{}') as Load;
const codes = readFileSync(file, 'latin1').split('\n');
const latencies: number[] = [];
const clock = new Int32Array(new SharedArrayBuffer(4));
/** The pause between checks for responses and due requests, in ms: the precision of the latencies. */
const PAUSE_MS = 0.02;
/** The warm-up before measuring, in ms: both sides first compile their code. */
const WARM_MS = 1_000;
/** The due times of requests for which no connection was free. */
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
    // A busy loop would take CPU time from other processes on the same core.
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
