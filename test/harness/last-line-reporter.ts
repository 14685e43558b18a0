import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** A test of a run, for `repeat-failed.ts`. `name`: the full name; undefined where a whole file failed. */
export interface TestId {
  readonly file: string;
  readonly name?: string;
}

/** What a run came to. A file that could not be collected, or whose hooks failed, counts as one failure. */
export interface RunResult {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly passedTests: readonly TestId[];
  readonly failedTests: readonly TestId[];
  /** Without those of a file that failed as a whole. */
  readonly skippedTests: readonly TestId[];
  /** Failures outside any test, each of which counts as one: the stacks of errors, or how the run ended. */
  readonly errors: readonly string[];
}

/**
 * Prints the seed, if there is one, and as the last line `N passed, N failed`, and the skipped tests if there are any.
 * With `TEST_RESULT` it also writes a `RunResult` as JSON to the file of that name.
 */
export default class LastLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    const passedTests: TestId[] = [];
    const failedTests: TestId[] = [];
    const skippedTests: TestId[] = [];
    for (const module of modules) {
      const file = module.relativeModuleId;
      const failedSuites = [...module.children.allSuites()].filter((suite) => suite.errors().length > 0);
      const hasFailed = failedSuites.length > 0 || module.errors().length > 0;
      if (hasFailed) {
        count.failed++;
        failedTests.push({ file });
      }
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        count[state === 'pending' ? 'skipped' : state]++;
        if (state === 'passed') passedTests.push({ file, name: test.fullName });
        if (state === 'failed') failedTests.push({ file, name: test.fullName });
        if (state === 'skipped' && !hasFailed) skippedTests.push({ file, name: test.fullName });
      }
    }
    const errors = unhandledErrors.map((error) => {
      const file = typeof error.VITEST_TEST_PATH === 'string' ? `${relative('.', error.VITEST_TEST_PATH)}: ` : '';
      return `${file}${error.stack ?? error.message}`;
    });
    const result: RunResult = { ...count, passedTests, failedTests, skippedTests, errors };
    if (process.env.TEST_RESULT) writeFileSync(process.env.TEST_RESULT, JSON.stringify(result));
    // After what the other reporters, the teardown and vitest itself still print.
    process.once('exit', (code) => {
      // A run can fail without a failed test, for example when the setup fails.
      const failed = code === 0 ? count.failed : Math.max(count.failed, 1);
      const seed = process.env.TEST_SEED === undefined ? '' : `seed: TEST_SEED=${process.env.TEST_SEED}\n`;
      process.stdout.write(`${seed}${lastLine({ ...count, failed })}\n`);
    });
  }
}

/** The line that people and scripts read. */
export function lastLine({ passed, failed, skipped }: Pick<RunResult, 'passed' | 'failed' | 'skipped'>): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
