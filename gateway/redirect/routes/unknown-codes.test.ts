import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, type MockInstance, onTestFinished, test, vi } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { newShortCode } from '../../../src/codes/create/short-code.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { insertAccount } from '../../../test/harness/insert-account.ts';
import { limitAttempts } from '../../http/address-limits.ts';
import { lookUpUnknownCodes, TooManyUnknown, type UnknownCodes } from './unknown-codes.ts';

const VISITOR = '198.51.100.1';
const MAX_UNKNOWN = 50;
/** Source: docs/contract.md, "Overview". */
const MAX_POLICY_BYTES = 60_000;

let url: string;
let database: pg.Pool;
let unknown: UnknownCodes;
let sent: MockInstance;
let logged: { msg: string; failed: number; reason: string; err?: unknown }[];

beforeAll(async () => {
  ({ url } = await freshDatabase());
  database = new pg.Pool({ connectionString: url, max: 1 });
});
afterAll(() => database.end());
beforeEach(() => {
  logged = [];
  sent = vi.spyOn(pg.Client.prototype, 'query');
  onTestFinished(() => sent.mockRestore());
  const logger = pino({ level: 'warn' }, { write: (line: string) => void logged.push(JSON.parse(line)) });
  unknown = lookUpUnknownCodes(url, limitAttempts(MAX_UNKNOWN), () => {}, logger);
  onTestFinished(() => unknown.close());
});

async function create(shortCode: string): Promise<void> {
  const accountId = await insertAccount(database);
  await database.query(
    `insert into codes (id, account_id, type, short_code, target_url) values ($1, $2, 'dynamic', $3, 'https://a.example')`,
    [newUuid(), accountId, shortCode],
  );
}

/** Locks the table while `work` runs, so that no look-up is answered. */
async function whileLocked(work: () => Promise<void>): Promise<void> {
  const tx = await database.connect();
  try {
    await tx.query('begin');
    await tx.query('lock table codes');
    await work();
  } finally {
    await tx.query('rollback');
    tx.release();
  }
}

/** The number of statements sent so far. */
function statements(): number {
  return sent.mock.calls.filter(([query]) => query.name === 'gateway_find_codes').length;
}

test('concurrent requests for one code share one look-up', async () => {
  await create('shared2');
  const routes = await Promise.all(Array.from({ length: 20 }, () => unknown.find('shared2', VISITOR)));
  for (const route of routes) expect(route?.entry).toMatchObject({ case: 'code', value: { shortCode: 'shared2' } });
  expect(statements()).toBe(1);
});

test('a new code is found during a flood of made-up ones, because many share a statement', async () => {
  await create('newcode');
  const flood = Array.from({ length: 900 }, (_, n) => unknown.find(newShortCode(), `198.51.100.${n % 250}`));
  const found = await unknown.find('newcode', VISITOR);
  expect(found?.entry).toMatchObject({ case: 'code', value: { shortCode: 'newcode' } });
  expect(new Set(await Promise.all(flood))).toEqual(new Set([undefined]));
  expect(statements()).toBeLessThanOrEqual(25);
});

test('a statement is answered with a few megabytes at most, also if all of its codes have the largest policies', async () => {
  await Promise.all(Array.from({ length: 900 }, () => unknown.find(newShortCode(), VISITOR)));
  const lookUps = sent.mock.calls.filter(([query]) => query.name === 'gateway_find_codes');
  expect(lookUps.length).toBeGreaterThan(1);
  for (const [{ values }] of lookUps) expect(values[0].length * MAX_POLICY_BYTES).toBeLessThanOrEqual(4_000_000);
});

test('text that is not a short code is never looked up', async () => {
  for (const text of ['', 'abc', 'Ab0dE9k', 'Ab3dE9l', 'Ab3dE9kk'])
    expect(await unknown.find(text, VISITOR)).toBeUndefined();
  expect(statements()).toBe(0);
});

test('codes that do not exist are counted by client address, and codes that do are not', async () => {
  await create('counted');
  const made = Array.from({ length: MAX_UNKNOWN }, newShortCode);
  for (const shortCode of made) {
    expect(await unknown.find('counted', VISITOR)).toBeDefined();
    expect(await unknown.find(shortCode, VISITOR)).toBeUndefined();
  }
  await expect(unknown.find(newShortCode(), VISITOR)).rejects.toThrow(TooManyUnknown);
  expect(await unknown.find(newShortCode(), '198.51.100.2')).toBeUndefined();
});

test('a negative result is cached for two seconds, and no longer', async () => {
  expect(await unknown.find('ergacht', VISITOR)).toBeUndefined();
  await create('ergacht');
  expect(await unknown.find('ergacht', VISITOR)).toBeUndefined();
  await expect.poll(() => unknown.find('ergacht', VISITOR), { interval: 100 }).toBeDefined();
});

test('a statement that fails rejects none of the look-ups that the other connection has taken meanwhile', async () => {
  const answers: ((error: Error | null, result?: { rows: [] }) => void)[] = [];
  sent.mockImplementation(({ name }, _values, answer) => name === 'gateway_find_codes' && answers.push(answer));
  const answered = async (nth: number, error: Error | null = null) => {
    await expect.poll(() => answers.length).toBeGreaterThan(nth);
    answers[nth]?.(error, { rows: [] });
  };
  const lookUp = (count: number) => Array.from({ length: count }, () => unknown.find(newShortCode(), VISITOR));
  const both = lookUp(2);
  const [third, fourth] = [lookUp(50), lookUp(50)];
  const outcomes = Promise.all([third, fourth].map((codes) => Promise.allSettled(codes)));
  // Both connections must be open: an open one would take the third statement before the other one has sent the second.
  await expect.poll(() => answers.length).toBe(2);
  await answered(0);
  await expect.poll(() => answers.length).toBe(3);
  await answered(1);
  await expect.poll(() => answers.length).toBe(4);
  await answered(2, new Error('it was reset'));
  await answered(3);
  const statuses = (await outcomes).map((codes) => new Set(codes.map(({ status }) => status)));
  expect(statuses).toEqual([new Set(['rejected']), new Set(['fulfilled'])]);
  expect(await Promise.all(both)).toEqual([undefined, undefined]);
});

test('while Postgres does not answer, look-ups fail, are bounded, and log one line without a stack', async () => {
  await create('cocked2');
  await whileLocked(async () => {
    const asked = Array.from({ length: 5_000 }, () => unknown.find(newShortCode(), VISITOR));
    const settled = Promise.allSettled([unknown.find('cocked2', VISITOR), ...asked]);
    // Requests beyond the queue's limit fail at once.
    const refused = asked.slice(-100).map((each) => each.catch((error: Error) => error.message));
    expect(new Set(await Promise.all(refused))).toEqual(new Set(['too many look-ups are waiting']));
    for (const { status } of await settled) expect(status).toBe('rejected');
    expect(statements()).toBeLessThanOrEqual(4);
  });
  expect(logged).toMatchObject([{ msg: 'unknown codes could not be looked up' }]);
  expect(logged[0]?.err).toBeUndefined();
  // Failures are not cached.
  expect(await unknown.find('cocked2', VISITOR)).toBeDefined();
});
