import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { PHONE_HEADERS } from '../bench/phone.ts';
import { ask } from './http.ts';
import { type TrackedCode, targetOf } from './ledger.ts';
import type { Heard } from './listeners.ts';
import type { Platform } from './platform.ts';

/** After that a platform has not recovered. */
const WITHIN_MS = 180_000;
const PAUSE_MS = 500;

/** Finds out when everything works again. */
export interface Recovery {
  /**
   * Resolves with how long it took, in ms, until a change through each gateway was acknowledged, led readers of both
   * there and arrived as event and webhook, until a scan at each gateway was recorded, and until neither said that it
   * lacks something; undefined when that does not happen within three minutes.
   */
  measure(): Promise<number | undefined>;
}

export interface RecoveryOptions {
  readonly platform: Platform;
  /** Codes of its own. */
  readonly codes: readonly TrackedCode[];
  readonly heard: readonly Heard[];
  readonly pool: Pool;
}

export function watchRecovery({ platform, codes, heard, pool }: RecoveryOptions): Recovery {
  let turn = 0;

  /** A change and a scan through a gateway; gives what to look for, or undefined while something fails. */
  async function use(gateway: number): Promise<{ target: string; referrer: string } | undefined> {
    const number = ++turn;
    // Several accounts, none of which may make 120 requests a minute.
    const code = codes[number % codes.length];
    const url = platform.gateways[gateway]?.url;
    if (!code || url === undefined) return undefined;
    const target = targetOf(code.key, number);
    const changed = await ask(`${url}/api/v1/qr-codes/${code.id}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${code.account.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ target_url: target }),
    });
    if (changed.status !== 200) return undefined;
    const referrer = `p${number}.torture.example`;
    const scanned = await ask(`${url}/r/${code.shortCode}`, {
      headers: { ...PHONE_HEADERS, referer: `https://${referrer}/` },
    });
    if (scanned.status !== 302) return undefined;
    for (const each of platform.gateways) {
      for (let left = 10; ; left--) {
        const { headers } = await ask(`${each.url}/r/${code.shortCode}`, { method: 'HEAD' });
        if (headers.location === target) break;
        if (left === 0) return undefined;
        await sleep(100);
      }
    }
    return { target, referrer };
  }

  async function isReady(gateway: number): Promise<boolean> {
    const { status, body } = await ask(`${platform.gateways[gateway]?.url}/readyz`);
    return status === 200 && (JSON.parse(body) as { degraded: string[] }).degraded.length === 0;
  }

  async function isRecorded(referrer: string): Promise<boolean> {
    const found = await pool.query('select from scans where referrer = $1', [referrer]).catch(() => undefined);
    return (found?.rowCount ?? 0) > 0;
  }

  return {
    async measure() {
      const startedAt = Date.now();
      const until = async (holds: () => Promise<boolean>): Promise<boolean> => {
        while (!(await holds())) {
          if (Date.now() > startedAt + WITHIN_MS) return false;
          await sleep(PAUSE_MS);
        }
        return true;
      };
      const recovered = await Promise.all(
        platform.gateways.map(async ({ index }) => {
          let used: Awaited<ReturnType<typeof use>>;
          const usable = async () => {
            used = await use(index);
            return used !== undefined;
          };
          return (
            (await until(usable)) &&
            (await until(() => isReady(index))) &&
            (await until(async () => heard.every(({ targets }) => targets.has(used?.target ?? '')))) &&
            (await until(() => isRecorded(used?.referrer ?? '')))
          );
        }),
      );
      return recovered.every(Boolean) ? Date.now() - startedAt : undefined;
    },
  };
}
