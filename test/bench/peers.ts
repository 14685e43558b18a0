/**
 * Signpost beside other products that shorten links, as far as they are installed: creating links, listing 25 of
 * 100,000, and redirects.
 *
 *   npm run bench:peers [-- seconds]      of each round of redirects, 2 unless told
 *
 * `KUTT_DIR` and `KUTT_NODE`, and `CHHOTO_URL_DIR`, say where they are; without these it prints how to set them up. It
 * needs wrk. All peers run at the same time on the same machine, those that need Postgres in one server, each with
 * 100,000 links before the first round. Rounds are interleaved, figures are medians. 16 clients send a request when the
 * last one is answered, over kept-alive connections; redirects are for codes in random order. The load shares the
 * machine with all of them. CPU is that of all processes of a peer, Postgres included, until what the requests leave
 * for later is done as well: outbox, recording of scans.
 */
import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { LOOPBACK } from '../../local/free-port.ts';
import { cpuOf } from './cpu.ts';
import { CHHOTO_URL_SETUP, startChhotoUrl } from './peers/chhoto-url.ts';
import { KUTT_SETUP, startKutt } from './peers/kutt.ts';
import type { Peer, Server } from './peers/peer.ts';
import { startSignpost } from './peers/signpost.ts';
import { startPlatform } from './platform.ts';
import { connectRest, type RestClient } from './rest-client.ts';
import { first, isInstalled } from './scan-subjects.ts';
import { type WrkResult, wrkScript } from './wrk.ts';

const SECONDS = Number(process.argv[2] ?? 2);
const CLIENTS = 16;
const LISTED = 25;
const ROUNDS = 5;
/** Of creates and lists. */
const ROUND_MS = 2_000;
/** Requests of each peer that do not count, while V8 compiles. Rounds differ in their number of requests. */
const WARM_UP = 6_000;
/** Redirects whose target is compared in full. */
const SAMPLE = 200;
/** When the recorded redirects are looked at, and for how long they may stay as they are before they count as lost. */
const LOOK_MS = 1_000;
const STALLED_MS = 10_000;

/**
 * Answers, requests a second, latencies in ms, CPU of a request in µs, and the share of redirects that were recorded.
 */
type Round = Record<'requests' | 'rate' | 'p50' | 'p99' | 'cpu' | 'answering' | 'postgres' | 'recorded', number>;

if (!isInstalled('wrk')) throw new Error('This benchmark needs wrk.');
// Peers end with this process whatever ends it.
process.once('SIGTERM', () => process.exit(143));
const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'signpost-peers-'));
await using cleanup = new AsyncDisposableStack();
cleanup.defer(() => rm(folder, { recursive: true, force: true }));
await using platform = await startPlatform();
await using running = new AsyncDisposableStack();
const { pids } = platform;
const options = { folder, databaseUrl: platform.databaseUrl, running };
const kutt = await startKutt(options);
const chhotoUrl = await startChhotoUrl(options);
if (!kutt) console.log(`${KUTT_SETUP}\n`);
if (!chhotoUrl) console.log(`${CHHOTO_URL_SETUP}\n`);
const peers: readonly Peer[] = [await startSignpost(platform, options), ...[kutt, chhotoUrl].filter((peer) => !!peer)];

for (const { name, listed } of peers) {
  const { length } = await listed();
  if (length !== LISTED) throw new Error(`${name} lists ${length} links instead of ${LISTED}`);
}
const HEAD = ['requests /s', 'p50', 'p99', 'CPU each', 'what answers', 'Postgres'];
for (const operation of ['create', 'list'] as const) {
  const before = await Promise.all(peers.map((peer) => peer.links()));
  const rounds = new Map(peers.map((peer) => [peer.name, [] as Round[]]));
  const answered = new Map(peers.map((peer) => [peer.name, 0]));
  const add = async (peer: Peer): Promise<Round> => {
    const round = await load(peer, peer[operation]);
    answered.set(peer.name, (answered.get(peer.name) ?? 0) + round.requests);
    return round;
  };
  for (const peer of peers) while ((answered.get(peer.name) ?? 0) < WARM_UP) await add(peer);
  for (let round = 0; round < ROUNDS; round++) {
    for (const peer of peers) rounds.get(peer.name)?.push(await add(peer));
  }
  for (const [index, peer] of peers.entries()) {
    const created = (await peer.links()) - (before[index] ?? 0);
    const expected = operation === 'create' ? answered.get(peer.name) : 0;
    if (created !== expected) throw new Error(`${peer.name} has ${created} links more instead of ${expected}`);
  }
  console.log(table([operation, ...HEAD], rounds));
}

const rounds = new Map<string, Round[]>();
for (const peer of peers) for (const server of peer.redirects.servers.values()) await checkRedirects(peer, server);
for (let round = 0; round <= ROUNDS; round++) {
  for (const peer of peers) {
    for (const [name, server] of peer.redirects.servers) {
      const figures = await redirect(peer, server);
      // The first one warms up.
      if (round > 0) rounds.set(name, [...(rounds.get(name) ?? []), figures]);
    }
  }
}
console.log(table(['redirect', ...HEAD, 'recorded'], rounds));
console.log(`${availableParallelism()} cores, load average ${loadavg().map(Math.round).join(', ')}`);

/** Sends the requests of a round, and says what came of them. */
async function load(peer: Peer, operation: Peer['create']): Promise<Round> {
  // New connections: a server may have closed those that waited for the others' rounds.
  const clients = await Promise.all(Array.from({ length: CLIENTS }, () => connectRest(peer.api.port)));
  await peer.beforeRound();
  const times: number[] = [];
  let next = 0;
  const before = cpu(peer.api);
  const start = performance.now();
  const lane = async (client: RestClient) => {
    for (let n = next++; n < peer.maxRequests && performance.now() - start < ROUND_MS; n = next++) {
      const begin = performance.now();
      await operation(n, client);
      times.push(performance.now() - begin);
    }
  };
  await Promise.all(clients.map(lane));
  const requests = times.length;
  const rate = requests / ((performance.now() - start) / 1_000);
  await peer.settled();
  const spent = spentSince(before, peer, peer.api, requests);
  for (const client of clients) client.close();
  times.sort((one, other) => one - other);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN;
  return { requests, rate, p50: at(0.5), p99: at(0.99), ...spent, recorded: 1 };
}

/** Asks for some codes, and expects exactly their targets. */
async function checkRedirects({ redirects }: Peer, { port }: Server): Promise<void> {
  const { prefix, status, targets } = redirects;
  const codes = [...targets.keys()];
  for (let n = 0; n < SAMPLE; n++) {
    const code = codes[randomInt(codes.length)] ?? '';
    const response = await fetch(`http://${LOOPBACK}:${port}${prefix}${code}`, { redirect: 'manual' });
    await response.arrayBuffer();
    const location = response.headers.get('location');
    if (response.status !== status || location !== targets.get(code)) {
      throw new Error(`${code} at port ${port} answered ${response.status} with ${location}`);
    }
  }
}

/** As many redirects as go, and then what is recorded of them. */
async function redirect(peer: Peer, server: Server): Promise<Round> {
  const { name, redirects } = peer;
  const scripts = join(folder, `wrk-${name}`);
  const codes = join(scripts, 'codes');
  await mkdir(scripts, { recursive: true });
  await writeFile(codes, shuffled([...redirects.targets.keys()]).join('\n'));
  const script = await wrkScript(scripts, codes, false, redirects);
  const [command = '', ...args] = [...first, 'wrk', '-t1', `-c${CLIENTS}`, `-d${SECONDS}s`, '-s', script];
  let recorded = await redirects.recorded();
  const counted = recorded;
  const before = cpu(server);
  const { stdout } = await run(command, [...args, `http://${LOOPBACK}:${server.port}/`]);
  const { requests, rate, p50, p99, wrong } = JSON.parse(/^\{.*\}$/m.exec(stdout)?.[0] ?? '') as WrkResult;
  if (wrong > 0) throw new Error(`${wrong} of ${requests} redirects of ${name} were wrong`);
  for (let moved = performance.now(); recorded - counted < requests && performance.now() - moved < STALLED_MS; ) {
    await sleep(LOOK_MS);
    const now = await redirects.recorded();
    if (now !== recorded) moved = performance.now();
    recorded = now;
  }
  const spent = spentSince(before, peer, server, requests);
  // wrk leaves up to one request a connection without waiting for its answer.
  return { requests, rate, p50, p99, ...spent, recorded: Math.min(1, (recorded - counted) / requests) };
}

function shuffled(codes: string[]): string[] {
  for (let at = codes.length - 1; at > 0; at--) {
    const other = randomInt(at + 1);
    [codes[at], codes[other]] = [codes[other] ?? '', codes[at] ?? ''];
  }
  return codes;
}

/** CPU so far, in µs, by what used it. */
function cpu({ pid, behind }: Server): Record<'answering' | 'behind' | 'postgres', number> {
  return {
    answering: cpuOf(pid),
    behind: behind.reduce((sum, each) => sum + cpuOf(each), 0),
    postgres: cpuOf(pids.postgres),
  };
}

/** CPU of a request. What Postgres does for others meanwhile, as for Signpost when it is idle, counts too. */
function spentSince(before: ReturnType<typeof cpu>, { usesPostgres }: Peer, server: Server, requests: number) {
  const now = cpu(server);
  const answering = (now.answering - before.answering) / requests;
  const postgres = usesPostgres ? (now.postgres - before.postgres) / requests : 0;
  return { answering, postgres, cpu: answering + postgres + (now.behind - before.behind) / requests };
}

/** The medians of the rounds. */
function table(head: readonly string[], figures: ReadonlyMap<string, readonly Round[]>): string {
  const lines = [...figures].map(([name, each]) => {
    const middle = (key: keyof Round) =>
      each.map((round) => round[key]).toSorted((one, other) => one - other)[each.length >> 1] ?? Number.NaN;
    const cells = [
      name,
      Math.round(middle('rate')).toLocaleString('en'),
      ...(['p50', 'p99'] as const).map((key) => `${middle(key).toFixed(1)} ms`),
      ...(['cpu', 'answering', 'postgres'] as const).map((key) => `${Math.round(middle(key)).toLocaleString('en')} µs`),
      `${(middle('recorded') * 100).toFixed(1)} %`,
    ];
    return `| ${cells.slice(0, head.length).join(' | ')} |`;
  });
  return [`| ${head.join(' | ')} |`, `|${' --- |'.repeat(head.length)}`, ...lines, ''].join('\n');
}
