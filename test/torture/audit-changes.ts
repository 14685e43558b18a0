import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { EVENTS } from '../../common/log/topics.ts';
import type { ReceivedEvents } from './event-receivers.ts';
import { type RequestResult, sendRequest } from './http.ts';
import { type Change, type Ledger, numberIn, type TortureAccount, type TrackedCode } from './ledger.ts';
import type { Platform } from './platform.ts';

/** How long a route may take to reach a gateway, in ms. */
const ROUTES_MS = 30_000;

export interface ChangesAudit {
  readonly platform: Platform;
  readonly ledger: Ledger;
  readonly pool: Pool;
  readonly accounts: readonly TortureAccount[];
  /** The ids `evt_…` on the topic, at the end of the run or when its consumer read them. */
  readonly onTopic: ReadonlySet<string>;
  readonly webhooks: ReceivedEvents;
}

/** An event in the outbox; those of a code are in the order of its commits. */
export interface OutboxEvent {
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  readonly at: number;
  readonly data: { readonly target_url?: string };
}

/**
 * Compares every requested change with the REST API, both gateways, the outbox, the events topic and the webhooks.
 * Returns the codes as the API returns them, by id.
 */
export async function auditChanges(audit: ChangesAudit): Promise<ReadonlyMap<string, CodeJson>> {
  const { ledger, platform } = audit;
  const events = await readOutbox(audit.pool);
  expectReceived(audit, events);
  const shown = new Map<string, CodeJson>();
  for (const account of audit.accounts) {
    for (const code of await listCodes(platform, account)) shown.set(code.id, code);
  }
  expectCreated(ledger, shown);
  await expectBatches(platform, ledger);
  const bySubject = Map.groupBy(events, ({ subject }) => subject);
  for (const code of ledger.codes) {
    expectState(ledger, code, shown.get(code.id));
    expectHistory(ledger, code, bySubject.get(code.id) ?? []);
  }
  await expectRedirects(platform, ledger, shown);
  return shown;
}

async function readOutbox(pool: Pool): Promise<OutboxEvent[]> {
  const { rows } = await pool.query<{ headers: Record<string, string>; value: Buffer }>(
    'select headers, value from outbox where topic = $1 order by id',
    [EVENTS.name],
  );
  return rows.map(({ headers, value }) => ({
    id: headers.ce_id ?? '',
    type: headers.ce_type ?? '',
    subject: headers.ce_subject ?? '',
    at: Date.parse(headers.ce_time ?? ''),
    data: JSON.parse(value.toString()),
  }));
}

function expectReceived({ ledger, onTopic, webhooks }: ChangesAudit, events: readonly OutboxEvent[]): void {
  for (const { id, type, subject, at } of events) {
    if (!onTopic.has(id)) ledger.find('lost', at, `event ${type} of ${subject} is not on the topic`);
    if (!webhooks.ids.has(id)) ledger.find('lost', at, `webhook ${type} of ${subject} was never received`);
  }
}

/** An acknowledged creation exists once, any other at most once. */
export function expectCreated(ledger: Ledger, shown: ReadonlyMap<string, CodeJson>): void {
  const byName = Map.groupBy(shown.values(), ({ name }) => name ?? '');
  const deleted = new Set(
    ledger.codes.filter(({ changes }) => changes.at(-1)?.kind === 'delete').map(({ key }) => key),
  );
  for (const { kind, name, rows, outcome, endedAt } of ledger.creations) {
    const names = kind === 'code' ? [name] : Array.from({ length: rows }, (_, row) => `${name}-${row}`);
    for (const each of names) {
      const found = byName.get(each)?.length ?? 0;
      if (found > 1) ledger.find('duplicated', endedAt, `${each} was created ${found} times`);
      if (found === 0 && outcome === 'acknowledged' && !deleted.has(each)) {
        ledger.find('lost', endedAt, `${each} was created and does not exist`);
      }
    }
  }
}

async function expectBatches(platform: Platform, ledger: Ledger): Promise<void> {
  for (const { kind, id, name, rows, account, endedAt } of ledger.creations) {
    if (kind !== 'batch' || id === undefined) continue;
    const { body } = await call(platform, account, `/batches/${id}`);
    const { data } = JSON.parse(body) as { data: { status: string; counts: { created: number } } };
    if (data.status !== 'completed' || data.counts.created !== rows) {
      ledger.find('lost', endedAt, `batch ${name} is ${data.status} with ${data.counts.created} of ${rows} codes`);
    }
  }
}

/** The API returns the state of the last acknowledged change, or of a later one with an unknown outcome. */
export function expectState(ledger: Ledger, code: TrackedCode, shown: CodeJson | undefined): void {
  const { key, changes } = code;
  const last = changes.findLast(({ outcome }) => outcome === 'acknowledged') as Change;
  const later = changes.slice(last.number + 1).filter(({ outcome }) => outcome === 'unknown');
  const number = numberIn(key, shown?.target_url);
  const possible = [last, ...later].some((change) =>
    change.kind === 'delete' ? shown === undefined : number === change.number && shown?.paused === change.paused,
  );
  if (possible) return;
  const state = shown === undefined ? 'gone' : `at change ${number}, paused: ${shown.paused}`;
  ledger.find('undone', last.endedAt, `${key} is ${state} after ${last.kind} ${last.number} was acknowledged`);
}

/** Every acknowledged change has one event, no change has two, and none happened after a later one was acknowledged. */
export function expectHistory(ledger: Ledger, { key, changes }: TrackedCode, events: readonly OutboxEvent[]): void {
  const order = events.map(({ type, data }) =>
    type === 'qr.archived'
      ? (changes.find(({ kind }) => kind === 'delete')?.number ?? -1)
      : (numberIn(key, data.target_url) ?? -1),
  );
  for (const { number, outcome, endedAt, kind } of changes) {
    const times = order.filter((each) => each === number).length;
    // A change without effect has no event, but every change here sets a new target.
    if (times === 0 && outcome === 'acknowledged')
      ledger.find('lost', endedAt, `${kind} ${number} of ${key} has no event`);
    if (times > 1) ledger.find('duplicated', endedAt, `${kind} ${number} of ${key} has ${times} events`);
    if (times > 0 && outcome === 'refused')
      ledger.find('wrong', endedAt, `${kind} ${number} of ${key} was refused and happened`);
  }
  let acknowledged = -1;
  for (const [index, number] of order.entries()) {
    if (number < acknowledged) {
      ledger.find('undone', events[index]?.at ?? 0, `change ${number} of ${key} came after ${acknowledged}`);
    }
    if (changes[number]?.outcome === 'acknowledged') acknowledged = Math.max(acknowledged, number);
  }
}

/** Both gateways redirect to the target in the API; checked with HEAD, which is not counted as a scan. */
async function expectRedirects(
  platform: Platform,
  ledger: Ledger,
  shown: ReadonlyMap<string, CodeJson>,
): Promise<void> {
  const end = Date.now() + ROUTES_MS;
  const live = [...shown.values()].map(({ id, short_code, name, target_url, paused }) => ({
    id,
    shortCode: short_code,
    key: name,
    expected: paused ? '200 ' : `302 ${target_url}`,
  }));
  const gone = ledger.codes
    .filter(({ id }) => !shown.has(id))
    .map(({ id, shortCode, key }) => ({ id, shortCode, key, expected: '410 ' }));
  for (const { url, index } of platform.gateways) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (const { shortCode, key, expected, id } of [...live, ...gone]) {
      for (;;) {
        const { status, headers } = await sendRequest(`${url}/r/${shortCode}`, { method: 'HEAD', agent });
        const found = `${status} ${headers.location ?? ''}`;
        if (found === expected) break;
        if (Date.now() > end) {
          const at = ledger.codes.find((code) => code.id === id)?.changes.at(-1)?.endedAt ?? end;
          ledger.find('undone', at, `gateway ${index} answers ${found} for ${key} instead of ${expected}`);
          break;
        }
        await sleep(250);
      }
    }
    agent.destroy();
  }
}

async function listCodes(platform: Platform, account: TortureAccount): Promise<CodeJson[]> {
  const codes: CodeJson[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body } = await call(platform, account, `/qr-codes?limit=100${cursor && `&cursor=${cursor}`}`);
    const page = JSON.parse(body) as { data: CodeJson[]; pagination: { next_cursor: string | null } };
    codes.push(...page.data);
    cursor = page.pagination.next_cursor;
  }
  return codes;
}

/** A read that must succeed once the account's burst limit allows it. */
export async function call(platform: Platform, { apiKey }: TortureAccount, path: string): Promise<RequestResult> {
  for (let left = 60; ; left--) {
    const url = `${platform.gateways[left % platform.gateways.length]?.url}/api/v1${path}`;
    const result = await sendRequest(url, { headers: { authorization: `Bearer ${apiKey}` } });
    if (result.status === 200) return result;
    if (left === 0) throw new Error(`GET ${path}: ${result.status} ${result.error} ${result.body}`);
    await sleep(Number(result.headers['retry-after'] ?? 1) * 1_000);
  }
}
