import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { Core } from './core.ts';
import { createServer } from './server.ts';

test('requests for readiness at the same time ask the core once', async () => {
  let asked = 0;
  const core = {
    origin: 'http://127.0.0.1:1',
    async isServing() {
      asked += 1;
      return true;
    },
  };
  const server = await createServer({
    dashboardUrl: 'https://dashboard.example',
    publicUrl: 'https://signpost.example',
    secretKey: Buffer.alloc(32),
    core: core as unknown as Core,
    provider: undefined,
    timeoutMs: 1_000,
    appFolder: import.meta.dirname,
    logger: pino({ level: 'silent' }),
  });
  const answers = await Promise.all(Array.from({ length: 20 }, () => server.inject('/readyz')));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(20).fill(200));
  expect(asked).toBe(1);
  await server.close();
});
