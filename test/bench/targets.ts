/**
 * The change of 25,000 targets in one request.
 *
 *   npm run bench:targets
 *
 * Starts a Postgres with the settings of a local run, a core for RPCs, one for background work and two gateways, and
 * sends `ChangeTargets` with a row for each of 25,000 codes. Measures the time to the response, in which every target
 * is changed; how long after it both gateways redirect every code to its new target; and, in the same round, a bare
 * `UPDATE … FROM unnest` of the target and version of as many codes of another account on the same Postgres.
 */
import { performance } from 'node:perf_hooks';
import { createClient } from '@connectrpc/connect';
import { Agent, request } from 'undici';
import { decodeId } from '../../common/contract/ids.ts';
import { TargetsService } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';
import { outboxPublished } from '../harness/outbox-published.ts';
import { median } from './median.ts';
import { startPlatform } from './platform.ts';

const CODES = 25_000;
const ROUNDS = 5;
/** Of each round's codes, how many are scanned at each gateway: the last ones to be announced, and some others. */
const SCANNED = 50;

await using platform = await startPlatform();
const other = await platform.addGateway({});
const gateways = [platform.url, `http://127.0.0.1:${other.port}`];
const database = await openDatabase(platform.databaseUrl, 4, entities);
const { pool } = database;

interface Codes {
  readonly accountId: string;
  /** UUID. */
  readonly owner: string;
  readonly ids: readonly string[];
  readonly shortCodes: readonly string[];
}

/** Creates an account with its codes over REST, so that gateways know them. */
async function createCodes(): Promise<Codes> {
  const { accountId, apiKey } = await platform.newAccount();
  const rows = Array.from({ length: CODES }, (_, n) => ({ target_url: `https://shop.example.com/menu?table=${n}` }));
  const response = await fetch(`${platform.url}/api/v1/batches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ rows }),
  });
  if (response.status !== 201) throw new Error(`the batch answered ${response.status}`);
  const owner = decodeId('acct', accountId) ?? '';
  const { rows: codes } = await pool.query<{ id: string; short_code: string }>(
    'select id, short_code from codes where account_id = $1 order by id',
    [owner],
  );
  await outboxPublished(pool);
  return { accountId, owner, ids: codes.map(({ id }) => id), shortCodes: codes.map((code) => code.short_code) };
}

const mine = await createCodes();
const bare = await createCodes();
const client = createClient(TargetsService, platform.transportFor(mine.accountId));

const urlOf = (round: number, n: number) => `https://shop.example.com/season/${round}?table=${n}`;

/** Changes all targets; returns the time to the response, in ms. */
async function change(round: number): Promise<number> {
  const rows = mine.shortCodes.map((value, n) => ({
    code: { case: 'shortCode', value } as const,
    targetUrl: urlOf(round, n),
  }));
  const start = performance.now();
  const response = await client.changeTargets({ rows });
  const took = performance.now() - start;
  const changed = response.change?.counts?.changed;
  if (changed !== CODES) throw new Error(`${changed} of ${CODES} targets are changed`);
  return took;
}

const agent = new Agent({ connections: 4 });

/** Waits until both gateways redirect these codes to the round's targets. */
async function visible(round: number): Promise<void> {
  const last = Array.from({ length: SCANNED }, (_, n) => CODES - 1 - n);
  const spread = Array.from({ length: SCANNED }, (_, n) => Math.floor((n * CODES) / SCANNED));
  for (const n of [...last, ...spread]) {
    for (const gateway of gateways) {
      for (;;) {
        const { headers, body } = await request(`${gateway}/r/${mine.shortCodes[n]}`, {
          method: 'HEAD',
          dispatcher: agent,
        });
        await body.dump();
        if (headers.location === urlOf(round, n)) break;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  }
}

/** The time of a bare update of as many codes, in ms. */
async function update(round: number): Promise<number> {
  const urls = bare.ids.map((_, n) => urlOf(round, n));
  const start = performance.now();
  await pool.query(
    `update codes c set target_url = n.target_url, version = c.version + 1, updated_at = now()
     from unnest($2::uuid[], $3::text[]) as n (id, target_url) where c.account_id = $1 and c.id = n.id`,
    [bare.owner, bare.ids, urls],
  );
  return performance.now() - start;
}

const changes: number[] = [];
const delays: number[] = [];
const updates: number[] = [];
for (let round = 0; round <= ROUNDS; round++) {
  const changing = await change(round);
  const answered = performance.now();
  await visible(round);
  const delay = performance.now() - answered;
  await outboxPublished(pool);
  const updating = await update(round);
  // The first round warms up.
  if (round === 0) continue;
  changes.push(changing);
  delays.push(delay);
  updates.push(updating);
}
const listed = (times: readonly number[]) => times.map((time) => time.toFixed(0)).join(', ');
console.log(`${CODES} targets changed, as the response says: ${median(changes).toFixed(0)} ms (${listed(changes)})`);
console.log(`visible at two gateways after another ${median(delays).toFixed(0)} ms (${listed(delays)})`);
console.log(`a bare UPDATE … FROM of as many codes: ${median(updates).toFixed(0)} ms (${listed(updates)})`);
console.log(`the change takes ${(median(changes) / median(updates)).toFixed(1)} times as long.`);
await agent.close();
await database.close();
