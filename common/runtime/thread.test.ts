import { expect, test } from 'vitest';
import { Thread } from './thread.ts';

test('a request that can’t be sent to the thread fails, and the others get their own results', async () => {
  const thread = new Thread<unknown, unknown>(new URL('./thread.fixture.ts', import.meta.url), 'echoes');
  const [one, unsendable, other] = await Promise.allSettled([1, () => 2, 3].map((request) => thread.run(request)));
  expect(one).toEqual({ status: 'fulfilled', value: 1 });
  expect(unsendable).toMatchObject({ status: 'rejected', reason: { name: 'DataCloneError' } });
  expect(other).toEqual({ status: 'fulfilled', value: 3 });
});
