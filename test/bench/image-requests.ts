import { performance } from 'node:perf_hooks';
import type { Pool } from 'pg';
import { decodeId, encodeId } from '../../common/contract/ids.ts';
import { resetBurstLimits } from './burst-limits.ts';
import { cpuOf } from './cpu.ts';
import type { Platform } from './platform.ts';
import { connectRest, requestText } from './rest-client.ts';

const ACCOUNTS = 10;
const CODES_EACH = 2_000;
const CONCURRENCY = 16;
/** The rate-limit windows are reset after this many requests, as a key allows 120 requests a minute. */
const SLICE = ACCOUNTS * 110;

/** The parts whose CPU time is measured; `core` includes the background core, `load` is this process. */
export const IMAGE_PARTS = ['gateway', 'core', 'postgres', 'load'] as const;

/** Images per second, latencies in ms, and the CPU time of an image in µs. */
export type ImageFigures = Record<'rate' | 'p50' | 'p99' | (typeof IMAGE_PARTS)[number], number>;

/** Requests images over REST, 16 at a time. */
export interface ImageRequests {
  /** Requests 1,100 images, each of the next code, with this query. */
  round(query: string): Promise<ImageFigures>;
  close(): void;
}

/** Creates ten accounts with 2,000 codes each; requests use all of them in turn. */
export async function imageRequests(platform: Platform, pool: Pool): Promise<ImageRequests> {
  const tenants = await Promise.all(
    Array.from({ length: ACCOUNTS }, async (_, tenant) => {
      const { accountId, apiKey } = await platform.newAccount();
      const { rows } = await pool.query<{ id: string }>(
        `insert into codes (id, account_id, type, short_code, target_url, name)
         select uuidv7(), $1::uuid, 'dynamic', to_hex(16777216 + $3::integer + n), 'https://example.com/' || n, 'Code ' || n
         from generate_series(1, $2::integer) as n
         returning id`,
        [decodeId('acct', accountId), CODES_EACH, tenant * CODES_EACH],
      );
      return { apiKey, codes: rows.map(({ id }) => encodeId('qr', id)) };
    }),
  );
  await pool.query('vacuum analyze codes');
  const port = Number(new URL(platform.url).port);
  const clients = await Promise.all(Array.from({ length: CONCURRENCY }, () => connectRest(port)));
  let next = 0;

  const request = (n: number, query: string) => {
    const { apiKey, codes } = tenants[n % ACCOUNTS] ?? { apiKey: '', codes: [] };
    return requestText('GET', `/qr-codes/${codes[Math.floor(n / ACCOUNTS) % CODES_EACH]}/image?${query}`, apiKey);
  };
  const cpu = () => {
    const { user, system } = process.cpuUsage();
    const { gateway, core, worker, postgres } = platform.pids;
    return {
      gateway: cpuOf(gateway),
      core: cpuOf(core) + cpuOf(worker),
      postgres: cpuOf(postgres),
      load: user + system,
    };
  };

  return {
    async round(query) {
      await resetBurstLimits(pool);
      const last = next + SLICE;
      const times: number[] = [];
      const before = cpu();
      const start = performance.now();
      await Promise.all(
        clients.map(async (client) => {
          while (next < last) {
            const begin = performance.now();
            const status = await client.send(request(next++, query));
            if (status !== 200) throw new Error(`an image answered ${status}`);
            times.push(performance.now() - begin);
          }
        }),
      );
      const seconds = (performance.now() - start) / 1_000;
      const after = cpu();
      times.sort((one, other) => one - other);
      const at = (share: number) => times[Math.floor(times.length * share)] ?? 0;
      const spent = (part: (typeof IMAGE_PARTS)[number]) => (after[part] - before[part]) / SLICE;
      return {
        rate: SLICE / seconds,
        p50: at(0.5),
        p99: at(0.99),
        gateway: spent('gateway'),
        core: spent('core'),
        postgres: spent('postgres'),
        load: spent('load'),
      };
    },
    close() {
      for (const client of clients) client.close();
    },
  };
}
