/**
 * Whether scans are as fast after attacks as before: their latencies at a Signpost that was attacked and at another one
 * that was not, in interleaved rounds.
 *
 *   node test/bench/after-attack.ts [seconds]      default: 5 for each attack
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GATEWAY_ATTACKS } from './gateway-attacks.ts';
import type { Measured } from './load.ts';
import { median } from './median.ts';
import { type Platform, startPlatform } from './platform.ts';
import { runLoad } from './run-load.ts';

const SECONDS = Number(process.argv[2] ?? 5);
const CODES = 100;
const SCANS_A_SECOND = 500;
const ROUNDS = 7;

/** A Signpost, and a file of its codes. */
interface Subject {
  readonly port: number;
  readonly codes: string;
}

await using attackedPlatform = await startPlatform();
await using otherPlatform = await startPlatform();
const attacked = await subjectOf(attackedPlatform, 'attacked');
const other = await subjectOf(otherPlatform, 'other');
const before = await rounds();
for (const kind of GATEWAY_ATTACKS) {
  const attacker = fork('test/bench/attacker.ts', [JSON.stringify({ kind, port: attacked.port, addresses: 250 })], {
    stdio: 'ignore',
  });
  await sleep(SECONDS * 1_000);
  attacker.kill('SIGKILL');
  await once(attacker, 'exit');
}
const after = await rounds();
console.log('\n| Scans, in ms | p50 before | p50 after | p99 before | p99 after |\n| --- | --- | --- | --- | --- |');
for (const name of ['attacked', 'other'] as const) {
  const figures = [before[name].p50, after[name].p50, before[name].p99, after[name].p99];
  console.log(`| ${name} | ${figures.map((ms) => ms.toFixed(2)).join(' | ')} |`);
}
await attackedPlatform[Symbol.asyncDispose]();
await otherPlatform[Symbol.asyncDispose]();
process.exit();

/** Medians of rounds, which alternate between the two. */
async function rounds() {
  const measured = { attacked: [] as Measured[], other: [] as Measured[] };
  for (let round = 0; round < ROUNDS; round++) {
    measured.attacked.push(await scans(attacked));
    measured.other.push(await scans(other));
    process.stderr.write('.');
  }
  return { attacked: medians(measured.attacked), other: medians(measured.other) };
}

async function scans({ port, codes }: Subject): Promise<Measured> {
  const measured = await runLoad({ port, connections: 16, seconds: 1, rate: SCANS_A_SECOND, codes });
  if (!measured) throw new Error('scans were not answered');
  return measured;
}

function medians(measured: readonly Measured[]): { p50: number; p99: number } {
  return { p50: median(measured.map(({ p50 }) => p50)), p99: median(measured.map(({ p99 }) => p99)) };
}

async function subjectOf(platform: Platform, name: string): Promise<Subject> {
  const { apiKey } = await platform.newAccount();
  const found: string[] = [];
  // Fewer than the burst limit allows.
  for (let n = 0; n < CODES; n++) {
    const response = await fetch(`${platform.url}/api/v1/qr-codes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
      body: '{"target_url":"https://example.com/menu"}',
    });
    const { data } = (await response.json()) as { data: { short_code: string } };
    found.push(data.short_code);
  }
  const codes = join(tmpdir(), `signpost-${name}-${process.pid}`);
  await writeFile(codes, found.join('\n'));
  return { port: Number(new URL(platform.url).port), codes };
}
