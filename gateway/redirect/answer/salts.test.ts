import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { openSalts, type Salts } from './salts.ts';

const NOW = Date.now();
const RETRIED = { interval: 50 };

const logger = pino({ level: 'silent' });
let url: string;
let database: pg.Pool;

beforeAll(async () => {
  ({ url } = await freshDatabase());
  database = new pg.Pool({ connectionString: url, max: 1 });
});
afterAll(() => database.end());

function open(databaseUrl = url): Salts {
  const salts = openSalts(databaseUrl, logger);
  onTestFinished(() => salts.close());
  return salts;
}

/** Inserts the salts of today and tomorrow, as a core does. */
async function make(digits: string): Promise<void> {
  await database.query('truncate visitor_salts');
  for (const [index, each] of [...digits].entries()) {
    await database.query(`insert into visitor_salts values ($1, decode($2, 'hex'))`, [
      new Date(NOW + index * DAY_MS).toISOString().slice(0, 10),
      each.repeat(64),
    ]);
  }
}

test('all processes use the salts of today and tomorrow from Postgres', async () => {
  await make('ab');
  for (const salts of [open(), open()]) {
    await salts.attempted;
    expect(salts.at(NOW)).toBe('a'.repeat(64));
    expect(salts.at(NOW + DAY_MS)).toBe('b'.repeat(64));
  }
});

test('without Postgres no scan is delayed: each process uses random salts of its own, a new one every day', async () => {
  const [one, other] = [open('postgres://nobody@127.0.0.1:1/none'), open('postgres://nobody@127.0.0.1:1/none')];
  const first = one.at(NOW);
  expect(first).toMatch(/^[0-9a-f]{64}$/);
  await one.attempted;
  expect(one.at(NOW)).toBe(first);
  expect(one.at(NOW + DAY_MS)).not.toBe(first);
  expect(other.at(NOW)).not.toBe(first);
});

test('a process that started without a salt in Postgres uses the one that is created later', async () => {
  await make('');
  const salts = open();
  await salts.attempted;
  const own = salts.at(NOW);
  await make('c');
  await expect.poll(() => salts.at(NOW), RETRIED).toBe('c'.repeat(64));
  expect(own).not.toBe('c'.repeat(64));
});

test('new salts, created after a crash of Postgres, are used within a minute; until then the previous ones are', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  await make('de');
  const salts = open();
  await salts.attempted;
  await make('');
  await vi.advanceTimersByTimeAsync(60_000);
  expect(salts.at(NOW)).toBe('d'.repeat(64));
  await make('fa');
  // Repeatedly, because the previous read may still be in progress when the clock is advanced.
  const aMinuteLater = async () => {
    await vi.advanceTimersByTimeAsync(60_000);
    return [salts.at(NOW), salts.at(NOW + DAY_MS)];
  };
  await expect.poll(aMinuteLater, RETRIED).toEqual(['f'.repeat(64), 'a'.repeat(64)]);
});

test('a process forgets the salt of a past day, even if there are no scans', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now: NOW });
  onTestFinished(() => void vi.useRealTimers());
  await make('ab');
  const salts = open();
  await salts.attempted;
  expect(salts.at(NOW)).toBe('a'.repeat(64));
  vi.setSystemTime(NOW + DAY_MS);
  const aMinuteLater = async () => {
    await vi.advanceTimersByTimeAsync(60_000);
    return salts.at(NOW);
  };
  await expect.poll(aMinuteLater, RETRIED).not.toBe('a'.repeat(64));
});

test.skipIf(inject('gatewayUrl') === null)('the role of gateways may read the salts', async () => {
  await make('a');
  const gatewayUrl = new URL(inject('gatewayUrl') ?? '');
  gatewayUrl.pathname = new URL(url).pathname;
  const salts = open(gatewayUrl.href);
  await salts.attempted;
  expect(salts.at(NOW)).toBe('a'.repeat(64));
});
