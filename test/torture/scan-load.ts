import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { PHONE_HEADERS } from '../bench/phone.ts';
import { ask } from './http.ts';
import { type Ledger, numberIn, type TrackedCode } from './ledger.ts';
import type { Platform } from './platform.ts';
import type { Random } from './random.ts';

/** Between the scans of a client, in ms: it leaves room on a machine with two cores. */
const PAUSE_MS = 25;
const PAUSE_AFTER_FAILURE_MS = 100;

/** Scans of a client at one gateway before it goes to the other one. */
const STAY = 50;

/** The host that stands as its referrer in the row of a scan. */
export function referrerOf(client: number, turn: number): string {
  return `s${client}-${turn}.torture.example`;
}

/**
 * Somebody who scans code after code until `going` says no. Every scan has a referrer of its own, by which the audit
 * finds it. Even clients keep their connection, odd ones open one for each scan; who gets no answer tries the other
 * gateway.
 */
export async function scanClient(
  client: number,
  { platform, ledger, random, going }: { platform: Platform; ledger: Ledger; random: Random; going: () => boolean },
): Promise<void> {
  const agent = client % 2 === 0 ? new Agent({ keepAlive: true, maxSockets: 1 }) : undefined;
  let gateway = Math.floor(client / 2) % platform.gateways.length;
  for (let turn = 0; going(); turn++) {
    const code = random.oneOf(ledger.codes);
    const token = referrerOf(client, turn);
    const url = `${platform.gateways[gateway]?.url}/r/${code.shortCode}`;
    const headers = { ...PHONE_HEADERS, referer: `https://${token}/` };
    const asked = await ask(url, { headers, agent });
    ledger.count(asked, `scan at gateway ${gateway}`);
    const { status, endedAt } = asked;
    const answered = status === 302 || status === 200;
    ledger.scans.push({ token, code, gateway, endedAt, answered });
    if (status !== undefined) expectRight(ledger, code, asked.headers.location, status, endedAt);
    // Like people behind a balancer: now and then somewhere else, and so on after a failure.
    if (status === undefined || turn % STAY === STAY - 1) gateway = (gateway + 1) % platform.gateways.length;
    await sleep(answered ? PAUSE_MS : PAUSE_AFTER_FAILURE_MS);
  }
  agent?.destroy();
}

/** A scan leads where some change of the code's has said, or to the page of its state. */
function expectRight(
  ledger: Ledger,
  { key, changes }: TrackedCode,
  location: string | undefined,
  status: number,
  at: number,
): void {
  const number = numberIn(key, location);
  const right =
    status === 503 ||
    (status === 302 && number !== undefined && changes.some((change) => change.number === number)) ||
    (status === 200 && changes.some(({ paused }) => paused)) ||
    (status === 410 && changes.some(({ kind }) => kind === 'delete'));
  if (!right) ledger.find('wrong', at, `scan of ${key}: ${status} ${location ?? ''}`);
}
