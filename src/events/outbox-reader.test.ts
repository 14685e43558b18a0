import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { freshDatabase } from '../../test/harness/database.ts';
import { addToOutbox } from './outbox.ts';
import { BATCH, CHECK_MS, OutboxReader } from './outbox-reader.ts';

let pool: pg.Pool;
beforeAll(async () => {
  pool = new pg.Pool({ connectionString: (await freshDatabase()).url });
});
afterAll(() => pool.end());

let reader: OutboxReader;
/** Runs `work` once, after the next statement with this name. */
let after: (name: string, work: () => Promise<void>) => void;
beforeEach(async () => {
  const client = await pool.connect();
  onTestFinished(() => {
    vi.restoreAllMocks();
    client.release();
  });
  const works = new Map<string, () => Promise<void>>();
  after = (name, work) => works.set(name, work);
  const query = async (what: pg.QueryConfig) => {
    const result = await client.query(what);
    await works.get(what.name ?? '')?.();
    works.delete(what.name ?? '');
    return result;
  };
  reader = await OutboxReader.open(new Proxy(client, { get: () => query }), true);
});

const record = (key: string, topic = 'topic') => ({ topic, key, value: null });
const add = (...records: ReturnType<typeof record>[]) => addToOutbox(pool, records);

/** A transaction that has added records, to be ended with `commit` or `rollback`. */
async function writer(...records: ReturnType<typeof record>[]): Promise<(how: 'commit' | 'rollback') => Promise<void>> {
  const client = await pool.connect();
  await client.query('begin');
  await addToOutbox(client, records);
  return async (how) => {
    await client.query(how);
    client.release();
  };
}

/** Reads rows and advances past them; returns their keys. */
async function read(except?: string[]): Promise<string[]> {
  const rows = await reader.next(except);
  if (rows.length > 0) await reader.published(rows);
  return rows.map(({ key }) => key);
}

/** Lets the next read check which transactions are still writing. */
function passTime(): void {
  // One more: the difference of two times is rounded.
  const now = performance.now() + CHECK_MS + 1;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
}

test('ids that were assigned after a check began are looked for until the next one', async () => {
  const first = await writer(record('first'));
  await add(record('other'));
  expect(await read()).toEqual(['other']);
  passTime();
  expect(await read()).toEqual([]);
  const second = await writer(record('second'));
  await add(record('another'));
  expect(await read()).toEqual(['another']);
  await first('rollback');
  passTime();
  expect(await read()).toEqual([]);
  await second('commit');
  expect(await read()).toEqual(['second']);
});

test('a row that appears after a read looked for it is found by the next one', async () => {
  const late = await writer(record('late'));
  await add(record('other'));
  expect(await read()).toEqual(['other']);
  passTime();
  after('events_outbox_in_holes', () => late('commit'));
  expect(await read()).toEqual([]);
  passTime();
  expect(await read()).toEqual(['late']);
  expect(reader.holes).toBe(0);
});

test('of two transactions that commit during a read, the rows of the first are read first', async () => {
  const late = await writer(record('first'));
  await add(record('other'));
  expect(await read()).toEqual(['other']);
  after('events_outbox_next', async () => {
    await late('commit');
    await add(record('second'));
  });
  expect([await read(), await read()]).toEqual([['first'], ['second']]);
});

test('a late transaction may have more rows than one read returns', async () => {
  const keys = Array.from({ length: BATCH + 1 }, (_, n) => String(n));
  const late = await writer(...keys.map((key) => record(key)));
  await add(record('other'));
  expect(await read()).toEqual(['other']);
  passTime();
  expect(await read()).toEqual([]);
  await late('commit');
  passTime();
  expect([...(await read()), ...(await read())]).toEqual(keys);
});

test('rows of a topic that is left out are read once it no longer is', async () => {
  await add(record('waits', 'refused'), record('other'));
  expect(await read(['refused'])).toEqual(['other']);
  passTime();
  expect(await read(['refused'])).toEqual([]);
  expect(await read()).toEqual(['waits']);
});
