import { defineConfig } from 'vitest/config';
import base from './vitest.config.ts';

/** Tests of many rounds, which take minutes. */
export default defineConfig({
  test: { ...base.test, include: ['{common,src,gateway,local,cli,test}/**/*.long.test.ts'], exclude: [] },
});
