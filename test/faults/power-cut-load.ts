import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, onTestFinished } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { decodeId } from '../../common/contract/ids.ts';
import type { Process, Signpost } from '../harness/processes.ts';
import { counted } from './visitors.ts';

/** Scans and changes that can be identified afterwards, to find those that a power cut has lost. */

const EVENTUALLY = { timeout: 60_000, interval: 200 };

/** Sends scans with unique referrers; `answered` has the time of each response in ms since 1970, by referrer. */
export function startScans(url: string, round: number, visitors = 8) {
  const answered = new Map<string, number>();
  let sent = 0;
  let isRunning = true;
  const all = Array.from({ length: visitors }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (isRunning) {
      const referrer = `scan${sent++}.round${round}.example`;
      const location = await locationOf(url, { agent, headers: { referer: `https://${referrer}/` } });
      if (location !== undefined) answered.set(referrer, Date.now());
      await sleep(20);
    }
    agent.destroy();
  });
  const stop = async () => {
    isRunning = false;
    await Promise.all(all);
  };
  onTestFinished(stop);
  return { answered, stop };
}

/** The target that a scan is redirected to; undefined without a redirect. */
export function locationOf(url: string, options: { agent?: Agent; headers?: Record<string, string> } = {}) {
  return new Promise<string | undefined>((resolve) => {
    const request = get(url, { ...options, timeout: 5_000 }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.headers.location));
      response.once('error', () => resolve(undefined));
    });
    request.once('timeout', () => request.destroy());
    request.once('error', () => resolve(undefined));
  });
}

/** A code and its possible targets: the last acknowledged one and those requested after it. */
export interface CodeWithTargets {
  readonly code: CodeJson;
  readonly apiKey: string;
  targets: (string | undefined)[];
}

/** Accounts, so that no key makes more than the 120 requests a minute that are allowed. */
const ACCOUNTS = 60;
/** The pause between two changes by one client, in ms. */
const PAUSE_MS = 20;

/** Creates and changes codes of many accounts in turn. */
export interface Client {
  /** Undefined unless the creation was acknowledged. */
  create(target: string): Promise<CodeWithTargets | undefined>;
  /** Whether the change was acknowledged. */
  change(code: CodeWithTargets, target: string): Promise<boolean>;
  /** Requests that were rejected because of a limit: expected to be 0, or the load is lower than intended. */
  readonly limited: number;
}

export async function newClient(signpost: Signpost): Promise<Client> {
  const accounts = await Promise.all(Array.from({ length: ACCOUNTS }, () => signpost.createAccount()));
  let creations = 0;
  let limited = 0;
  const send = async (apiKey: string, method: string, path: string, target: string) => {
    const answer = await api(signpost, apiKey, method, path, { target_url: target }).catch(() => undefined);
    if (answer?.status === 429) limited++;
    return answer?.ok ? answer : undefined;
  };
  return {
    get limited() {
      return limited;
    },
    async create(target) {
      const { apiKey = '' } = accounts[creations++ % ACCOUNTS] ?? {};
      const answer = await send(apiKey, 'POST', '/qr-codes', target);
      const answered = (await answer?.json().catch(() => undefined)) as { data: CodeJson } | undefined;
      return answered && { code: answered.data, apiKey, targets: [target] };
    },
    async change({ code, apiKey }, target) {
      return (await send(apiKey, 'PATCH', `/qr-codes/${code.id}`, target)) !== undefined;
    },
  };
}

let changes = 0;

/** Changes one code after the other until it is stopped. */
export function startChanges(codes: readonly CodeWithTargets[], client: Client) {
  let isRunning = true;
  const all = [0, 1].map(async (first) => {
    for (let at = first; isRunning; at = (at + 2) % codes.length) {
      const changed = codes[at] as CodeWithTargets;
      const target = `https://example.com/${++changes}`;
      changed.targets.push(target);
      if (await client.change(changed, target)) changed.targets = [target];
      await sleep(PAUSE_MS);
    }
  });
  const stop = async () => {
    isRunning = false;
    await Promise.all(all);
  };
  onTestFinished(stop);
  return { stop };
}

/** Calls the REST API with a timeout of ten seconds. */
export async function api(
  signpost: Signpost,
  apiKey: string,
  method: string,
  path: string,
  json: unknown,
): Promise<Response> {
  return fetch(`${signpost.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify(json),
    signal: AbortSignal.timeout(10_000),
  });
}

/** The codes that redirect to none of their possible targets. */
export async function withWrongTarget(
  codes: readonly CodeWithTargets[],
  urlOf: (code: CodeJson) => string,
): Promise<unknown[]> {
  const found = [];
  for (const { code, targets } of codes) {
    const location = await locationOf(urlOf(code));
    if (location === undefined || !targets.includes(location)) found.push({ location, targets });
  }
  return found;
}

/** The number of bytes that wait in a gateway's spools. */
export async function waitingBytes({ url }: Process): Promise<number> {
  const { scans } = (await (await fetch(`${url}/readyz`)).json()) as { scans: { waiting_bytes: number } };
  return scans.waiting_bytes;
}

/** Expects that each of these scans is recorded exactly once. */
export async function expectRecorded(
  url: string,
  code: CodeJson,
  answered: ReadonlyMap<string, number>,
): Promise<void> {
  const lost = async () => {
    const found = await recordedScans(url, code);
    return [...answered.keys()].filter((referrer) => !found.has(referrer)).length;
  };
  await expect.poll(lost, EVENTUALLY).toBe(0);
  await expectNoDuplicates(url, code);
}

/** How often each scan was recorded, by its referrer. */
export async function recordedScans(url: string, code: CodeJson): Promise<Map<string, number>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ referrer: string; scans: number }>(
      'select referrer, count(*)::int as scans from scans where code_id = $1 group by 1',
      [decodeId('qr', code.id)],
    );
    return new Map(rows.map(({ referrer, scans }) => [referrer, scans]));
  } finally {
    await client.end();
  }
}

/** Expects that no scan is recorded twice, and that the code's counter equals the number of its rows. */
export async function expectNoDuplicates(url: string, code: CodeJson): Promise<void> {
  // Longer than scans in transit take to arrive.
  await sleep(2_000);
  expect([...(await recordedScans(url, code))].filter(([, scans]) => scans > 1)).toEqual([]);
  const { counter, scans } = await counted(url, code);
  expect(counter).toBe(scans);
}
