import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { PHONE_HEADERS } from '../bench/phone.ts';
import type { ReceivedEvents } from './event-receivers.ts';
import { sendRequest } from './http.ts';
import { type TrackedCode, targetOf } from './ledger.ts';
import type { Platform } from './platform.ts';

/** The time after which recovery has failed, in ms. */
const TIMEOUT_MS = 180_000;
const PAUSE_MS = 500;

/** Measures how long it takes until everything works again. */
export interface Recovery {
  /**
   * Resolves with the time, in ms, until a change through each gateway was acknowledged, took effect at both and
   * arrived as an event and a webhook, until a scan at each gateway was recorded, and until neither reported being
   * degraded; undefined if that takes more than three minutes.
   */
  measure(): Promise<number | undefined>;
}

export interface RecoveryOptions {
  readonly platform: Platform;
  /** Codes that nothing else uses. */
  readonly codes: readonly TrackedCode[];
  readonly receivers: readonly ReceivedEvents[];
  readonly pool: Pool;
}

export function watchRecovery({ platform, codes, receivers, pool }: RecoveryOptions): Recovery {
  let probes = 0;

  /** Sends a change and a scan through a gateway; returns what identifies them, or undefined while something fails. */
  async function probe(gateway: number): Promise<{ target: string; referrer: string } | undefined> {
    const number = ++probes;
    // Several accounts, so that none exceeds 120 requests a minute.
    const code = codes[number % codes.length];
    const url = platform.gateways[gateway]?.url;
    if (!code || url === undefined) return undefined;
    const target = targetOf(code.key, number);
    const changed = await sendRequest(`${url}/api/v1/qr-codes/${code.id}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${code.account.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ target_url: target }),
    });
    if (changed.status !== 200) return undefined;
    const referrer = `p${number}.torture.example`;
    const scanned = await sendRequest(`${url}/r/${code.shortCode}`, {
      headers: { ...PHONE_HEADERS, referer: `https://${referrer}/` },
    });
    if (scanned.status !== 302) return undefined;
    for (const each of platform.gateways) {
      for (let left = 10; ; left--) {
        const { headers } = await sendRequest(`${each.url}/r/${code.shortCode}`, { method: 'HEAD' });
        if (headers.location === target) break;
        if (left === 0) return undefined;
        await sleep(100);
      }
    }
    return { target, referrer };
  }

  async function isReady(gateway: number): Promise<boolean> {
    const { status, body } = await sendRequest(`${platform.gateways[gateway]?.url}/readyz`);
    return status === 200 && (JSON.parse(body) as { degraded: string[] }).degraded.length === 0;
  }

  async function isRecorded(referrer: string): Promise<boolean> {
    const found = await pool.query('select from scans where referrer = $1', [referrer]).catch(() => undefined);
    return (found?.rowCount ?? 0) > 0;
  }

  return {
    async measure() {
      const startedAt = Date.now();
      const until = async (condition: () => Promise<boolean>): Promise<boolean> => {
        while (!(await condition())) {
          if (Date.now() > startedAt + TIMEOUT_MS) return false;
          await sleep(PAUSE_MS);
        }
        return true;
      };
      const recovered = await Promise.all(
        platform.gateways.map(async ({ index }) => {
          let probed: Awaited<ReturnType<typeof probe>>;
          const isUsable = async () => {
            probed = await probe(index);
            return probed !== undefined;
          };
          return (
            (await until(isUsable)) &&
            (await until(() => isReady(index))) &&
            (await until(async () => receivers.every(({ targets }) => targets.has(probed?.target ?? '')))) &&
            (await until(() => isRecorded(probed?.referrer ?? '')))
          );
        }),
      );
      return recovered.every(Boolean) ? Date.now() - startedAt : undefined;
    },
  };
}
