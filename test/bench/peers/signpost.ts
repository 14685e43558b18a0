import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'pg';
import { decodeId } from '../../../common/contract/ids.ts';
import { outboxPublished } from '../../harness/outbox-published.ts';
import { ACCOUNTS, operationsOn } from '../api-operations.ts';
import { resetBurstLimits } from '../burst-limits.ts';
import type { Platform } from '../platform.ts';
import { LINKS, type Peer, type PeerOptions, TARGET } from './peer.ts';

/** The largest batch. */
const BATCH = 25_000;

/**
 * Signpost as a local run has it, with its log in Postgres. A key makes at most 120 requests a minute, so creates and
 * lists are spread over ten accounts, whose windows are emptied between rounds. Each of them has as many links as a
 * peer has in all; codes for redirects belong to one more account and are created in batches, so that all have routes.
 */
export async function startSignpost(platform: Platform, { running }: Pick<PeerOptions, 'running'>): Promise<Peer> {
  const { pids } = platform;
  const pool = new Pool({ connectionString: platform.databaseUrl, max: 12 });
  running.defer(() => pool.end());
  const { create, list } = await operationsOn(platform, pool);
  if (!create || !list) throw new Error('no such operation');
  const { targets, apiKey } = await createBatches(platform, pool);
  const single = await platform.addGateway({ GATEWAY_WORKERS: '1' });
  const number = async (sql: string) => Number((await pool.query<{ n: string }>(sql)).rows[0]?.n);
  const behind = [pids.core, pids.worker];
  const api = { port: Number(new URL(platform.url).port), pid: pids.gateway, behind };
  return {
    name: 'Signpost',
    api,
    usesPostgres: true,
    create: create.rest,
    list: list.rest,
    async listed() {
      const headers = { authorization: `Bearer ${apiKey}` };
      const response = await fetch(`${platform.url}/api/v1/qr-codes`, { headers });
      return ((await response.json()) as { data: unknown[] }).data;
    },
    // A window admits 120 requests of each key.
    maxRequests: ACCOUNTS * 110,
    beforeRound: () => resetBurstLimits(pool),
    settled: () => outboxPublished(pool),
    links: () => number('select count(*) as n from codes'),
    redirects: {
      prefix: '/r/',
      status: 302,
      target: TARGET,
      targets,
      servers: new Map([
        ['Signpost', api],
        ['Signpost, one worker', { ...single, behind }],
      ]),
      recorded: () => number('select coalesce(sum(scans), 0) as n from scan_totals'),
    },
  };
}

/** Creates an account and its codes over REST; gives their targets, once their routes are in the log. */
async function createBatches({ url, newAccount }: Platform, pool: Pool) {
  const { accountId, apiKey } = await newAccount();
  for (let at = 0; at < LINKS; at += BATCH) {
    const rows = Array.from({ length: BATCH }, (_, n) => ({ target_url: `${TARGET}${at + n}` }));
    const body = JSON.stringify({ rows });
    const headers = { authorization: `Bearer ${apiKey}` };
    const response = await fetch(`${url}/api/v1/batches`, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(`a batch answered ${response.status}: ${await response.text()}`);
    await response.arrayBuffer();
  }
  for (;;) {
    const { rows } = await pool.query<{ short_code: string; target_url: string }>(
      'select short_code, target_url from codes where account_id = $1',
      [decodeId('acct', accountId)],
    );
    if (rows.length === LINKS) {
      await outboxPublished(pool);
      return { targets: new Map(rows.map(({ short_code, target_url }) => [short_code, target_url])), apiKey };
    }
    await sleep(1_000);
  }
}
