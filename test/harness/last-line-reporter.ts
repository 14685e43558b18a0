import type { Reporter, TestModule } from 'vitest/node';

/**
 * Ends the run with one line that people and scripts can read: `N passed, N failed`, and the skipped ones if there are
 * any. A file that could not even be collected counts as one failure. Tests that passed only at their second try are
 * named above it: each is a bug, of the test or of what it tests.
 */
export default class LastLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    const unsteady: string[] = [];
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        count[state === 'pending' ? 'skipped' : state]++;
        if (test.diagnostic()?.flaky) unsteady.push(`${module.relativeModuleId} > ${test.fullName}`);
      }
      if (module.errors().length > 0) count.failed++;
      for (const suite of module.children.allSuites()) if (suite.errors().length > 0) count.failed++;
    }
    // After whatever the other reporters, the teardown and vitest itself still print.
    process.once('exit', (code) => {
      // A run can fail without a test that does, for instance when the setup fails.
      const failed = code === 0 ? count.failed : Math.max(count.failed, 1);
      const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : '';
      for (const name of unsteady) process.stdout.write(`passed only at the second try: ${name}\n`);
      process.stdout.write(`${count.passed} passed, ${failed} failed${skipped}\n`);
    });
  }
}
