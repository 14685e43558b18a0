import { defineConfig } from 'vitest/config';

/** The journey through the containers, which `test/containers/run.sh` starts in the network of their engine. */
export default defineConfig({
  test: {
    include: ['test/containers/journey.test.ts'],
    reporters: ['verbose', './test/harness/last-line-reporter.ts'],
    testTimeout: 480_000,
    hookTimeout: 60_000,
    // Each step needs those before it.
    bail: 1,
  },
});
