import { expect, test } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import type { Queryable } from '../../common/postgres/sql.ts';
import { existingTags, resolveLabels } from './resolve.ts';

/** A spelling of a name of 100 characters. */
const LONG = 'e\u0302\u0323\u0323'.repeat(100);

/** Answers nothing, and keeps the names that were searched for. */
function recording() {
  const sought: unknown[] = [];
  const query = async ({ values }: { values: unknown[] }) => {
    sought.push(values[2]);
    return { rows: [] };
  };
  return { sought, on: { query } as unknown as Queryable };
}

test('references that no label can have are not looked up', async () => {
  const invalid = [
    '',
    ' ',
    'a\0b',
    'a\nb',
    '\u0080',
    'x'.repeat(1_201),
    ...Array.from({ length: 1_000 }, (_, n) => `\u0001${n}`),
  ];
  const { sought, on } = recording();
  expect(await existingTags(on, newUuid(), [...invalid, ' menu\n', LONG])).toEqual([]);
  const { tags } = await resolveLabels(on, newUuid(), { folders: invalid, tags: invalid });
  expect([...tags.problems.keys()]).toEqual(invalid);
  expect(sought).toEqual([['menu', LONG]]);
});
