import { defineConfig } from 'vitest/config';
import base, { LONG_TESTS } from './vitest.config.ts';

export default defineConfig({
  test: { ...base.test, include: LONG_TESTS, exclude: ['node_modules/**'] },
});
