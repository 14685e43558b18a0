import { expect, test } from 'vitest';
import { ownTurn } from './own-turn.ts';

test('callers at the same time get turns of the event loop of their own, in order', async () => {
  let turn = 0;
  let counting = true;
  const count = () => {
    turn++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  const seen: [caller: number, turn: number][] = [];
  await Promise.all(
    Array.from({ length: 20 }, async (_, caller) => {
      await ownTurn();
      seen.push([caller, turn]);
    }),
  );
  counting = false;
  expect(seen.map(([caller]) => caller)).toEqual(Array.from({ length: 20 }, (_, caller) => caller));
  expect(new Set(seen.map(([, when]) => when)).size).toBe(20);
});
