/**
 * Sends single creates and scans, one of each at a time, and measures their latencies by the phase in which they began.
 * It runs in its own process, so that the client of a batch does not delay them in a shared event loop.
 *
 *   fork('test/bench/single-requests.ts', [JSON.stringify({ url, databaseUrl, key, scanUrl })])
 *
 * Each message is the name of the next phase. After `end` it sends the latencies and exits.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { resetBurstLimits } from './burst-limits.ts';
import { connectRest, httpText, requestText } from './rest-client.ts';

export interface SingleRequestsOptions {
  /** The base URL of the gateway. */
  readonly url: string;
  readonly databaseUrl: string;
  readonly key: string;
  readonly scanUrl: string;
}

/** What follows; `end`: nothing. */
export type Phase = 'alone' | 'beside a batch' | 'while it is published' | 'end';

/** Latencies in ms. */
export type SingleRequestTimes = Record<'create' | 'scan', Partial<Record<Phase, number[]>>>;

const PAUSE_MS = 20;

const { url, databaseUrl, key, scanUrl } = JSON.parse(process.argv[2] ?? '{}') as SingleRequestsOptions;
const { host, port } = new URL(url);
const times: SingleRequestTimes = { create: {}, scan: {} };
let phase: Phase = 'alone';
process.on('message', (next: Phase) => {
  phase = next;
});
process.once('disconnect', () => process.exit());
const database = new Client(databaseUrl);
await database.connect();
const create = requestText('POST', '/qr-codes', key, JSON.stringify({ target_url: 'https://example.com' }));
const scan = httpText('GET', new URL(scanUrl).pathname, { Host: host });
await Promise.all([repeat('create', create, 201, () => resetBurstLimits(database)), repeat('scan', scan, 302)]);
await database.end();
process.send?.(times);

async function repeat(
  kind: keyof SingleRequestTimes,
  request: string,
  expected: number,
  prepare?: () => Promise<void>,
): Promise<void> {
  const client = await connectRest(Number(port));
  while (phase !== 'end') {
    await prepare?.();
    const [began, start] = [phase, performance.now()];
    const status = await client.send(request);
    if (status !== expected) throw new Error(`a ${kind} answered ${status}`);
    times[kind][began] ??= [];
    times[kind][began].push(performance.now() - start);
    await sleep(PAUSE_MS);
  }
  client.close();
}
