import { expect, inject, test } from 'vitest';
import { torture } from './torture.ts';

/** A new schedule for each seed of a run; `TORTURE_SEED` repeats one. */
const seed = Number(process.env.TORTURE_SEED || process.env.TEST_SEED);

test.skipIf(inject('kafkaBrokers') === null)(
  'a minute of random faults loses, duplicates and undoes nothing',
  async () => {
    const progress = [`TORTURE_SEED=${seed}`];
    const { passed, report } = await torture({ minutes: 1, seed, logProgress: (line) => void progress.push(line) });
    expect(passed, [...progress, report].join('\n')).toBe(true);
  },
  // Starting takes up to two minutes, and so may the last recovery; settling waits for a webhook’s second attempt.
  1_200_000,
);
