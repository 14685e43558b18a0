import { Pool } from 'pg';
import { afterAll, expect, test } from 'vitest';
import { freshDatabase } from '../../test/harness/database.ts';
import { binaryArray } from './binary-array.ts';

const pool = new Pool({ connectionString: (await freshDatabase({ migrated: false })).url, max: 1 });
afterAll(() => pool.end());

test('Postgres reads every element of a binary array as it was given', async () => {
  const texts = ['', 'a,b', '{"NULL"}', 'é\\"\n', '漢字 🎉', null];
  const bytes = [Buffer.alloc(0), Buffer.from([0, 255, 92, 34]), null];
  const headers = [{}, { ce_id: 'é"\\', empty: '' }];
  const { rows } = await pool.query(
    'select $1::integer[] as integers, $2::text[] as texts, $3::bytea[] as bytes, $4::jsonb[] as headers, $5::text[] as none',
    [
      binaryArray('integer', [0, -1, 2 ** 31 - 1]),
      binaryArray('text', texts),
      binaryArray('bytea', bytes),
      binaryArray(
        'jsonb',
        headers.map((each) => JSON.stringify(each)),
      ),
      binaryArray('text', []),
    ],
  );
  expect(rows).toEqual([{ integers: [0, -1, 2 ** 31 - 1], texts, bytes, headers, none: [] }]);
});
