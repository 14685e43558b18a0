import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { webhooksFixture } from '../webhooks.fixture.ts';
import { deleteFullBudgets, refundBudgets, spendBudgets } from './attempt-budgets.ts';

const HOST = 'hooks.example.com';
const { pool } = await webhooksFixture();

const spend = async (account: string, attempts: number) => {
  const [grant] = await spendBudgets(pool, [{ account, host: HOST, attempts }]);
  if (!grant) throw new Error('no grant was returned');
  return grant;
};

const passTime = (account: string, seconds: number) =>
  pool.query(
    `update webhook_attempt_budgets set spent_until = spent_until - $2 * interval '1 s' where account_id = $1`,
    [account, seconds],
  );

test('allows fifty attempts at once, then one every 30 seconds, up to fifty again', async () => {
  const account = newUuid();
  expect(await spend(account, 48)).toMatchObject({ granted: 48 });
  expect(await spend(account, 5)).toMatchObject({ granted: 2 });
  const { granted, wait } = await spend(account, 5);
  expect(granted).toBe(0);
  expect(wait).toBeGreaterThan(20_000);
  expect(wait).toBeLessThanOrEqual(30_000);
  await passTime(account, 30);
  expect(await spend(account, 5)).toMatchObject({ granted: 1 });
  await passTime(account, 86_400);
  expect(await spend(account, 200)).toMatchObject({ granted: 50 });
});

test('each account has a budget for each host, and refunded attempts can be spent again', async () => {
  const [account, other] = [newUuid(), newUuid()];
  await spend(account, 50);
  const requested = [
    { account, host: HOST, attempts: 1 },
    { account, host: 'other.example.com', attempts: 3 },
    { account: other, host: HOST, attempts: 2 },
  ];
  const grants = await spendBudgets(pool, requested);
  const granted = requested.map(({ account, host }) =>
    grants.find((each) => each.account === account && each.host === host),
  );
  expect(granted).toMatchObject([{ granted: 0 }, { granted: 3 }, { granted: 2 }]);
  await refundBudgets(pool, [
    { account, host: HOST, attempts: 4 },
    { account, host: 'never.example.com', attempts: 1 },
  ]);
  expect(await spend(account, 10)).toMatchObject({ granted: 4 });
});

test('concurrent requests for several budgets in any order get no more than is left, and do not deadlock', async () => {
  const hosts = ['a.example', 'b.example', 'c.example'];
  const requests = fc.array(
    fc.record({
      order: fc.shuffledSubarray(hosts, { minLength: 1 }),
      attempts: fc.integer({ min: 1, max: 20 }),
      refunds: fc.boolean(),
    }),
    { minLength: 1, maxLength: 15 },
  );
  await fc.assert(
    fc.asyncProperty(requests, async (calls) => {
      const account = newUuid();
      const left = new Map(hosts.map((host) => [host, 50]));
      const grants = await Promise.all(
        calls.map(async ({ order, attempts, refunds }) => {
          const granted = await spendBudgets(
            pool,
            order.map((host) => ({ account, host, attempts })),
          );
          if (!refunds) return granted;
          await refundBudgets(
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

test('a transaction that began before the whole budget was spent gets nothing, rather than less', async () => {
  const account = newUuid();
  const earlier = await pool.connect();
  onTestFinished(() => earlier.release());
  await earlier.query('begin');
  await earlier.query('select now()');
  await sleep(20);
  expect(await spend(account, 50)).toMatchObject({ granted: 50 });
  const grants = await spendBudgets(earlier as unknown as typeof pool, [{ account, host: HOST, attempts: 5 }]);
  await earlier.query('commit');
  expect(grants).toMatchObject([{ granted: 0 }]);
  expect(await spend(account, 5)).toMatchObject({ granted: 0 });
});

test('budgets that are full again are deleted, and others are not', async () => {
  const [account, other] = [newUuid(), newUuid()];
  await spend(account, 10);
  await spend(other, 10);
  await passTime(account, 301);
  await deleteFullBudgets(pool);
  const { rows } = await pool.query('select account_id from webhook_attempt_budgets where account_id = any($1)', [
    [account, other],
  ]);
  expect(rows).toEqual([{ account_id: other }]);
});
