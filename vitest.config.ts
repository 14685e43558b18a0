import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{common,src,gateway,local,cli,test}/**/*.test.ts'],
    globalSetup: ['test/harness/global-setup.ts'],
    setupFiles: ['test/harness/after-file.ts'],
    reporters: ['default', './test/harness/last-line-reporter.ts'],
    // Real processes, signals and working directories: threads have none of their own.
    pool: 'forks',
    // Postgres, Kafka and the processes under test want the machine too.
    maxWorkers: 2,
    testTimeout: 30_000,
    // What waits for a change to land is not held up by a machine's hiccup; the reporter names who needed it.
    retry: process.env.CI ? 1 : 0,
    hookTimeout: 60_000,
  },
});
