import { randomInt } from 'node:crypto';
import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import LongestFirst from './test/harness/longest-first.ts';

// Property tests draw from it; the reporter prints it.
process.env.TEST_SEED ??= String(randomInt(2 ** 31));

// For all processes that tests start, most of all commands: with it the command line starts with three quarters of the
// CPU time.
process.env.NODE_COMPILE_CACHE ??= resolve('node_modules/.cache/compiled');

/**
 * Tests of faults, hostile clients, SDKs and generated clients, and those that wait for timeouts, take minutes:
 * `npm run test:long`.
 */
export const LONG_TESTS = ['test/{clients,faults,helm,hostile,sdk,torture}/**/*.test.ts', '**/*.long.test.ts'];

export default defineConfig({
  test: {
    include: ['{common,src,gateway,dashboard,local,cli,test}/**/*.test.ts'],
    // The journey through the containers has a configuration of its own.
    exclude: [...LONG_TESTS, 'test/containers/**'],
    globalSetup: ['test/harness/global-setup.ts'],
    setupFiles: ['test/harness/after-file.ts', 'test/harness/ports.ts', 'test/harness/seed.ts'],
    reporters: ['default', './test/harness/last-line-reporter.ts'],
    // Real processes, signals and working directories: threads have none of their own.
    pool: 'forks',
    // Many tests wait, but Postgres, Kafka and the processes under test want the machine too.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // They end tests that hang. On a busy machine, a test that starts processes may take 30 s, and an answer several.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
  },
});
