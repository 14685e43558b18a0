import { setTimeout as sleep } from 'node:timers/promises';
import { timestampNow } from '@bufbuild/protobuf/wkt';
import type { Pool } from 'pg';
import { sendRequest } from './http.ts';
import type { Platform } from './platform.ts';

/** The second attempt of a webhook delivery is made five minutes after the first, with 10 % jitter. */
const TIMEOUT_MS = 420_000;
/** How long nothing must have changed: gateways ship the scans that they hold within some ten seconds. */
const STILL_MS = 12_000;

/** Waits until all data has been delivered; returns a description of what has not after seven minutes. */
export async function settle(
  platform: Platform,
  pool: Pool,
  logProgress: (line: string) => void,
): Promise<string | undefined> {
  const end = Date.now() + TIMEOUT_MS;
  let [previous, since] = ['', Date.now()];
  for (;;) {
    const state = await describe(platform, pool).catch((error: Error) => `the state can't be read: ${error.message}`);
    if (state !== previous) {
      logProgress(`settling: ${state}`);
      [previous, since] = [state, Date.now()];
    }
    if (state.startsWith('still') && Date.now() - since >= STILL_MS) return undefined;
    if (Date.now() > end) return state;
    // What webhooks wait for may be their second attempt.
    await sleep(state.startsWith('only webhooks') ? 3_000 : 1_000);
  }
}

async function describe(platform: Platform, pool: Pool): Promise<string> {
  for (const { url, index } of platform.gateways) {
    const { status, body } = await sendRequest(`${url}/readyz`);
    if (status !== 200) return `gateway ${index} answers ${status}`;
    const { degraded, scans } = JSON.parse(body);
    if (degraded.length > 0) return `gateway ${index} lacks ${degraded}`;
    if (scans.waiting_bytes > 0 || scans.held_bytes > 0) return `scans wait at gateway ${index}`;
  }
  const today = timestampNow();
  const { waiting } = await (await platform.core()).scans.auditScans({ from: today, to: today });
  if (waiting > 0n) return 'scans wait for a recorder';
  const { rows } = await pool.query(`
    select (select count(*) from outbox_waiting) as outbox,
           (select count(*) from webhook_deliveries where status = 'pending') as webhooks,
           (select count(*) from batches where completed_at is null) as batches,
           (select count(*) from scans) as scans,
           (select count(*) from webhook_deliveries) as deliveries`);
  const [{ outbox, webhooks, batches, scans, deliveries }] = rows;
  if (outbox > 0 || batches > 0) return `${outbox} rows wait in the outbox, ${webhooks} webhooks, ${batches} batches`;
  if (webhooks > 0) return `only webhooks wait: ${webhooks}`;
  return `still: ${scans} scans, ${deliveries} deliveries`;
}
