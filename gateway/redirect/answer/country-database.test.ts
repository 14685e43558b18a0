import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { mmdbOf } from '../../../test/harness/mmdb.ts';
import { type CountryDatabase, openCountryDatabase } from './country-database.ts';

const CHECK_MS = 50;
const folder = mkdtempSync(join(tmpdir(), 'signpost-countries-'));
afterAll(() => rmSync(folder, { recursive: true }));

let logged = '';
const logger = pino(
  { level: 'info' },
  new Writable({
    write(chunk, _, done) {
      logged += chunk;
      done();
    },
  }),
);

async function open(file: string): Promise<CountryDatabase> {
  const database = await openCountryDatabase(file, logger, CHECK_MS);
  onTestFinished(() => database.close());
  return database;
}

/** A record in the layout of MaxMind and DB-IP. */
function inMaxMindsLayout(code: string) {
  return { continent: { code: 'EU' }, country: { iso_code: code, names: { en: 'A country' } } };
}

test.each([
  ['MaxMind’s layout', inMaxMindsLayout],
  ['the layout of the bundled one', (code: string) => ({ country_code: code })],
])('a database in %s resolves IPv4 and IPv6 addresses', async (_, record) => {
  const file = join(folder, 'layouts.mmdb');
  writeFileSync(file, mmdbOf({ '203.0.113.0/24': record('PT'), '2001:db8:7::/48': record('BR') }));
  const { countryOf } = await open(file);
  expect(countryOf('203.0.113.77')).toBe('PT');
  expect(countryOf('::ffff:203.0.113.77')).toBe('PT');
  expect(countryOf('2001:db8:7::1')).toBe('BR');
  // The bundled database says Germany.
  expect(countryOf('194.25.0.60')).toBe('unknown');
});

test('a replaced or overwritten database is reloaded; an unreadable one is logged once and the last usable one stays in use', async () => {
  const file = join(folder, 'replaced.mmdb');
  writeFileSync(file, mmdbOf({ '203.0.113.0/24': inMaxMindsLayout('PT') }));
  const { countryOf } = await open(file);
  expect(countryOf('203.0.113.77')).toBe('PT');

  writeFileSync(`${file}.new`, mmdbOf({ '203.0.113.0/24': inMaxMindsLayout('ES') }));
  renameSync(`${file}.new`, file);
  await expect.poll(() => countryOf('203.0.113.77')).toBe('ES');

  logged = '';
  const whole = mmdbOf({ '203.0.113.0/24': inMaxMindsLayout('FR') });
  writeFileSync(`${file}.new`, whole.subarray(0, whole.length / 2));
  renameSync(`${file}.new`, file);
  await expect.poll(() => logged).toContain('the last usable database stays in use');
  expect(countryOf('203.0.113.77')).toBe('ES');
  rmSync(file);
  await expect.poll(() => logged.split('\n').filter(Boolean)).toHaveLength(2);
  await new Promise((resolve) => setTimeout(resolve, 5 * CHECK_MS));
  expect(logged.split('\n').filter(Boolean)).toHaveLength(2);
  expect(countryOf('203.0.113.77')).toBe('ES');

  writeFileSync(file, whole);
  await expect.poll(() => countryOf('203.0.113.77')).toBe('FR');
});

test('the bundled database is used while the configured one is unreadable at start', async () => {
  const file = join(folder, 'broken.mmdb');
  writeFileSync(file, 'no database');
  const { countryOf } = await open(file);
  expect(countryOf('194.25.0.60')).toBe('DE');
  writeFileSync(file, mmdbOf({ '194.25.0.0/24': inMaxMindsLayout('AT') }));
  await expect.poll(() => countryOf('194.25.0.60')).toBe('AT');
});
