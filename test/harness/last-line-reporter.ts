import type { Reporter, TestModule } from 'vitest/node';

/**
 * Ends the run with one line for people and scripts: `N passed, N failed`, plus the skipped ones if any. A file that
 * could not be collected counts as one failure. Tests that passed only on their second attempt are listed above it:
 * each is a bug, of the test or of what it tests.
 */
export default class LastLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    const flaky: string[] = [];
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        count[state === 'pending' ? 'skipped' : state]++;
        if (test.diagnostic()?.flaky) flaky.push(`${module.relativeModuleId} > ${test.fullName}`);
      }
      if (module.errors().length > 0) count.failed++;
      for (const suite of module.children.allSuites()) if (suite.errors().length > 0) count.failed++;
    }
    // Printed after the output of other reporters, the teardown and vitest itself.
    process.once('exit', (code) => {
      // A run can fail without a failed test, for example when the setup fails.
      const failed = code === 0 ? count.failed : Math.max(count.failed, 1);
      const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : '';
      for (const name of flaky) process.stdout.write(`passed only on the second attempt: ${name}\n`);
      process.stdout.write(`${count.passed} passed, ${failed} failed${skipped}\n`);
    });
  }
}
