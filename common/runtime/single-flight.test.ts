import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { singleFlight } from './single-flight.ts';

test('callers at the same time share one look-up however long it takes, and later ones its answer for a while', async () => {
  let asked = 0;
  const healthy = singleFlight(async () => {
    asked++;
    await sleep(150);
    return true;
  }, 60);
  const first = healthy();
  await sleep(100);
  await Promise.all([first, ...Array.from({ length: 500 }, healthy)]);
  expect(asked).toBe(1);
  await Promise.all(Array.from({ length: 500 }, healthy));
  expect(asked).toBe(1);
  await sleep(80);
  await Promise.all(Array.from({ length: 500 }, healthy));
  expect(asked).toBe(2);
});
