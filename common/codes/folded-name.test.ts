import pg from 'pg';
import { expect, test } from 'vitest';
import { folded } from '../../src/taxonomy/entities.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { foldedName } from './folded-name.ts';

test.each([
  ['STRAẞE', 'straße', 'Strasse'],
  ['ΟΔΟΣ', 'οδος', 'οδοσ'],
  ['\u212Aaffee', 'KAFFEE'],
  ['Caf\u00e9', 'CAFE\u0301 '],
])('%s is the same name in other case and spelling', (name, ...others) => {
  for (const other of others) expect(foldedName(other), other).toBe(foldedName(name));
});

test('no character is the same as another one unless it is in Postgres', async () => {
  const client = new pg.Client({ connectionString: (await freshDatabase({ migrated: false })).url });
  await client.connect();
  const { rows } = await client.query<{ letter: string; name: string }>(
    `select letter, ${folded('letter')} as name from (
       select chr(n) as letter from generate_series(33, ${0x1_ffff}) n where n not between ${0xd800} and ${0xdfff}
     ) letters where unicode_assigned(letter)`,
  );
  await client.end();
  const letters = rows.filter(({ letter }) => letter.trim() !== '');
  expect(letters.length).toBeGreaterThan(50_000);
  const alike = (fold: (row: { letter: string; name: string }) => string) =>
    [...Map.groupBy(letters, fold).values()]
      .filter(({ length }) => length > 1)
      .map((group) => group.map(({ letter }) => letter).join(' '));
  expect(alike(({ letter }) => foldedName(letter))).toEqual(alike(({ name }) => name));
});
