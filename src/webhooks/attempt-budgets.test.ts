import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { forgetFullBudgets, payBackBudgets, spendBudgets } from './attempt-budgets.ts';
import { webhooksFixture } from './webhooks.fixture.ts';

const HOST = 'hooks.example.com';
const { pool } = await webhooksFixture();

const spend = async (account: string, attempts: number) => {
  const [grant] = await spendBudgets(pool, [{ account, host: HOST, attempts }]);
  if (!grant) throw new Error('nothing was answered');
  return grant;
};

const later = (account: string, seconds: number) =>
  pool.query(
    `update webhook_attempt_budgets set spent_until = spent_until - $2 * interval '1 s' where account_id = $1`,
    [account, seconds],
  );

test('fifty attempts at once, then one every half a minute, up to fifty again', async () => {
  const account = newUuid();
  expect(await spend(account, 48)).toMatchObject({ granted: 48 });
  expect(await spend(account, 5)).toMatchObject({ granted: 2 });
  const { granted, wait } = await spend(account, 5);
  expect(granted).toBe(0);
  expect(wait).toBeGreaterThan(20_000);
  expect(wait).toBeLessThanOrEqual(30_000);
  await later(account, 30);
  expect(await spend(account, 5)).toMatchObject({ granted: 1 });
  await later(account, 86_400);
  expect(await spend(account, 200)).toMatchObject({ granted: 50 });
});

test('each account has its own for each host, and what is paid back can be spent again', async () => {
  const [account, other] = [newUuid(), newUuid()];
  await spend(account, 50);
  const asked = [
    { account, host: HOST, attempts: 1 },
    { account, host: 'other.example.com', attempts: 3 },
    { account: other, host: HOST, attempts: 2 },
  ];
  const grants = await spendBudgets(pool, asked);
  const granted = asked.map(({ account, host }) =>
    grants.find((each) => each.account === account && each.host === host),
  );
  expect(granted).toMatchObject([{ granted: 0 }, { granted: 3 }, { granted: 2 }]);
  await payBackBudgets(pool, [
    { account, host: HOST, attempts: 4 },
    { account, host: 'never.example.com', attempts: 1 },
  ]);
  expect(await spend(account, 10)).toMatchObject({ granted: 4 });
});

test('whoever asks at once, for several in any order: no more than there is, and nobody waits for another in a circle', async () => {
  const hosts = ['a.example', 'b.example', 'c.example'];
  const asking = fc.array(
    fc.record({
      order: fc.shuffledSubarray(hosts, { minLength: 1 }),
      attempts: fc.integer({ min: 1, max: 20 }),
      paysBack: fc.boolean(),
    }),
    { minLength: 1, maxLength: 15 },
  );
  await fc.assert(
    fc.asyncProperty(asking, async (calls) => {
      const account = newUuid();
      const left = new Map(hosts.map((host) => [host, 50]));
      const grants = await Promise.all(
        calls.map(async ({ order, attempts, paysBack }) => {
          const granted = await spendBudgets(
            pool,
            order.map((host) => ({ account, host, attempts })),
          );
          if (!paysBack) return granted;
          await payBackBudgets(
            pool,
            granted.map(({ host, granted }) => ({ account, host, attempts: granted })),
          );
          return [];
        }),
      );
      for (const { host, granted } of grants.flat()) left.set(host, (left.get(host) ?? 0) - granted);
      expect(Math.min(...left.values())).toBeGreaterThanOrEqual(0);
    }),
    { numRuns: 30 },
  );
});

test('budgets that are full again are forgotten, and others are not', async () => {
  const [account, other] = [newUuid(), newUuid()];
  await spend(account, 10);
  await spend(other, 10);
  await later(account, 301);
  await forgetFullBudgets(pool);
  const { rows } = await pool.query('select account_id from webhook_attempt_budgets where account_id = any($1)', [
    [account, other],
  ]);
  expect(rows).toEqual([{ account_id: other }]);
});
