import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../local/sample/random.ts';
import { PHONE_HEADERS } from '../bench/phone.ts';
import { sendRequest } from './http.ts';
import { type Ledger, numberIn, type TrackedCode } from './ledger.ts';
import type { Platform } from './platform.ts';

/** The pause between the scans of a client, in ms, so that two CPU cores are not saturated. */
const PAUSE_MS = 25;
const PAUSE_AFTER_FAILURE_MS = 100;

/** Scans of a client at one gateway before it switches to the other. */
const SCANS_PER_GATEWAY = 50;

/** The referrer host by which a scan's row is found. */
function referrerOf(client: number, turn: number): string {
  return `s${client}-${turn}.torture.example`;
}

/**
 * A client that scans one code after the other while `isRunning()`. Every scan has a unique referrer, by which the
 * audit finds it. Clients with even numbers keep their connection, those with odd ones open one for each scan. After a
 * scan without a response, the client switches to the other gateway.
 */
export async function scanClient(
  client: number,
  {
    platform,
    ledger,
    random,
    isRunning,
  }: { platform: Platform; ledger: Ledger; random: Random; isRunning: () => boolean },
): Promise<void> {
  const agent = client % 2 === 0 ? new Agent({ keepAlive: true, maxSockets: 1 }) : undefined;
  let gateway = Math.floor(client / 2) % platform.gateways.length;
  for (let turn = 0; isRunning(); turn++) {
    const code = random.oneOf(ledger.codes);
    const token = referrerOf(client, turn);
    const url = `${platform.gateways[gateway]?.url}/r/${code.shortCode}`;
    const headers = { ...PHONE_HEADERS, referer: `https://${token}/` };
    const result = await sendRequest(url, { headers, agent });
    ledger.count(result, `scan at gateway ${gateway}`);
    const { status, endedAt } = result;
    const answered = status === 302 || status === 200;
    ledger.scans.push({ token, code, gateway, endedAt, answered });
    if (status !== undefined) expectValidAnswer(ledger, code, result.headers.location, status, endedAt);
    // As behind a load balancer: another gateway now and then, and after a failure.
    if (status === undefined || turn % SCANS_PER_GATEWAY === SCANS_PER_GATEWAY - 1)
      gateway = (gateway + 1) % platform.gateways.length;
    await sleep(answered ? PAUSE_MS : PAUSE_AFTER_FAILURE_MS);
  }
  agent?.destroy();
}

/** A scan is redirected to a target that some change has set, or gets the page of the code's state. */
function expectValidAnswer(
  ledger: Ledger,
  { key, changes }: TrackedCode,
  location: string | undefined,
  status: number,
  at: number,
): void {
  const number = numberIn(key, location);
  const valid =
    status === 503 ||
    (status === 302 && number !== undefined && changes.some((change) => change.number === number)) ||
    (status === 200 && changes.some(({ paused }) => paused)) ||
    (status === 410 && changes.some(({ kind }) => kind === 'delete'));
  if (!valid) ledger.find('wrong', at, `scan of ${key}: ${status} ${location ?? ''}`);
}
