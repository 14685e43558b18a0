import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newUuid } from '../../src/contract/ids.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { lookUpUnknownCodes, type UnknownCodes } from './unknown-codes.ts';

let database: pg.Pool;
let unknown: UnknownCodes;

beforeAll(async () => {
  const { url } = await freshDatabase();
  database = new pg.Pool({ connectionString: url, max: 1 });
  unknown = lookUpUnknownCodes(url, pino({ level: 'silent' }));
});
afterAll(() => Promise.all([unknown.close(), database.end()]));

async function create(shortCode: string): Promise<void> {
  const accountId = newUuid();
  await database.query(`insert into accounts (id, name, plan) values ($1, 'Test', 'business')`, [accountId]);
  await database.query(
    `insert into codes (id, account_id, type, short_code, target_url) values ($1, $2, 'dynamic', $3, 'https://a.example')`,
    [newUuid(), accountId, shortCode],
  );
}

test('many who ask for one code share one look-up', async () => {
  await create('shared2');
  const asked = Array.from({ length: 20 }, () => unknown.find('shared2'));
  expect(new Set(asked).size).toBe(1);
  expect((await asked[0])?.entry).toMatchObject({ case: 'code', value: { shortCode: 'shared2' } });
});

test('that there is no such code is believed for two seconds, and no longer', async () => {
  expect(await unknown.find('later22')).toBeUndefined();
  await create('later22');
  expect(await unknown.find('later22')).toBeUndefined();
  await expect.poll(() => unknown.find('later22'), { timeout: 10_000, interval: 100 }).toBeDefined();
});

test('that Postgres is away is not remembered', async () => {
  await create('locked2');
  const tx = await database.connect();
  try {
    await tx.query('begin');
    await tx.query('lock table codes');
    await expect(unknown.find('locked2')).rejects.toThrow(/timeout/i);
  } finally {
    await tx.query('rollback');
    tx.release();
  }
  expect(await unknown.find('locked2')).toBeDefined();
});
