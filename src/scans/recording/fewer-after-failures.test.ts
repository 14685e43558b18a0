import { expect, test } from 'vitest';
import type { LogRecord } from '../../../common/log/log.ts';
import { logRecord } from '../scans.fixture.ts';
import { fewerAfterFailures } from './fewer-after-failures.ts';

/** Records of a partition with every other offset from 1 on. */
const records = (count: number, partition: number): LogRecord[] =>
  Array.from({ length: count }, (_, nth) => ({ ...logRecord('k', null), partition, offset: BigInt(2 * nth + 1) }));

test('a poll that takes too long is handled in smaller parts, those of other partitions are not', async () => {
  const parts: string[] = [];
  let tooMany = 4;
  const handle = fewerAfterFailures(10, async (part, from) => {
    const { partition = 0, offset: last = 0n } = part.at(-1) ?? {};
    parts.push(`${partition}: ${part.length} from ${from} to ${last}`);
    if (partition === 0 && part.length >= tooMany) throw new Error('too slow');
  });
  const slow = records(10, 0);
  for (const _ of [1, 2]) await expect(handle(slow, 0n, '')).rejects.toThrow('too slow');
  await handle(records(10, 1), 0n, '');
  // The second part is too large again.
  await expect(handle(slow, 0n, '')).rejects.toThrow('too slow');
  tooMany = 7;
  await handle(slow, 0n, '');
  await handle(slow.slice(0, 6), 0n, '');
  expect(parts).toEqual([
    '0: 10 from 0 to 19',
    '0: 5 from 0 to 9',
    '1: 10 from 0 to 19',
    '0: 3 from 0 to 5',
    '0: 6 from 6 to 17',
    '0: 3 from 0 to 5',
    '0: 6 from 6 to 17',
    '0: 1 from 18 to 19',
    '0: 6 from 0 to 11',
  ]);
});
