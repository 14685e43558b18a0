import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Small files that take long. Without results of an earlier run, as in CI, vitest starts the largest files first, so
 * that these would be the last, and run alone while the other workers have nothing left to do.
 */
const SMALL_BUT_LONG = [
  'test/torture/torture.test.ts',
  'test/sdk/contract.test.ts',
  'test/idle.test.ts',
  'gateway/redirect/routes/route-table.long.test.ts',
  'test/command-line.test.ts',
  'test/first-account.test.ts',
];

/** Starts those that take long before all others, which are in vitest's order. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const index = SMALL_BUT_LONG.indexOf(relative(this.ctx.config.root, moduleId));
      return index === -1 ? SMALL_BUT_LONG.length : index;
    };
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
  }
}
