import { defineConfig } from 'vitest/config';
import base, { LONG_TESTS } from './vitest.config.ts';

export default defineConfig({
  test: {
    ...base.test,
    include: LONG_TESTS,
    exclude: ['node_modules/**'],
    // Whole installations and browsers on two shared cores: some tests take 60 s there.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
