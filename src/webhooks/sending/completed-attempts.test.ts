import type { Pool } from 'pg';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { decodeId, newUuid } from '../../../common/contract/ids.ts';
import { fanOutRecords } from '../fan-out.ts';
import { eventRecord, webhooksFixture } from '../webhooks.fixture.ts';
import { spendBudgets } from './attempt-budgets.ts';
import { completedAttempts } from './completed-attempts.ts';
import { leasedEndpoints } from './leased-endpoints.ts';
import { queueOf } from './queue.ts';

const HOST = 'hooks.example.com';
const logger = pino({ level: 'silent' });
const { pool, secretCipher, newAccount } = await webhooksFixture();

test('successful attempts are refunded even if an endpoint that failed in the same batch cannot be disabled', async () => {
  const account = await newAccount();
  const ids = [await account.addEndpoint(`https://${HOST}/`), await account.addEndpoint(`https://${HOST}/gone`)];
  await fanOutRecords(pool, [eventRecord(account.id)], logger);
  const budget = { account: account.id, host: HOST };
  await spendBudgets(pool, [{ ...budget, attempts: 50 }]);
  const queue = queueOf(pool, newUuid(), 30_000, secretCipher.keyIds);
  const leased = leasedEndpoints(secretCipher, logger);
  for (const row of await queue.claim({ working: 10, throttled: 10 })) leased.put(row);
  // Transactions take a connection, and single statements do not.
  const withoutTransactions = Object.create(pool, {
    connect: {
      value: (callback?: Parameters<Pool['connect']>[0]) =>
        callback ? pool.connect(callback) : Promise.reject(new Error('no transaction')),
    },
  }) as Pool;
  const completed = completedAttempts({ pool: withoutTransactions, queue, leased, logger });
  for (const [index, { id }] of ids.entries()) {
    const endpoint = leased.get(decodeId('hook', id) ?? '');
    if (!endpoint) throw new Error('not leased');
    const { row } = endpoint;
    const [delivery] = await queue.due(
      [{ ...row, deliveries: 1, bytes: 1_000, testsOnly: false, hasNone: true }],
      [],
      1_000,
    );
    if (!delivery) throw new Error('nothing is due');
    const [status, newStatus] = index === 0 ? ([204, 'succeeded'] as const) : ([410, 'failed'] as const);
    const result = { delivery: delivery.id, attempts: 0, at: new Date(), status, latencyMs: 1, response: '' };
    completed.add({ endpoint, url: row.url, delivery, result: { ...result, newStatus, retryInS: null }, budget });
  }
  await expect(completed.record()).rejects.toThrow('no transaction');
  expect(await spendBudgets(pool, [{ ...budget, attempts: 2 }])).toMatchObject([{ granted: 1 }]);
});

test.each([
  ['that leased it before', 410, false],
  ['that leases it again', 410, true],
  ['that leases it again', 500, true],
])(
  'an attempt made before an endpoint was disabled and enabled again does not disable it: by a process %s, %i',
  async (_, status, again) => {
    await pool.query('delete from webhook_endpoints');
    const account = await newAccount();
    const { id: hook } = await account.addEndpoint(`https://${HOST}/`);
    await fanOutRecords(pool, [eventRecord(account.id)], logger);
    const queue = queueOf(pool, newUuid(), 30_000, secretCipher.keyIds);
    const leased = leasedEndpoints(secretCipher, logger);
    const completed = completedAttempts({ pool, queue, leased, logger });
    const claim = async () => {
      for (const row of await queue.claim({ working: 10, throttled: 10 })) leased.put(row);
      const endpoint = leased.get(decodeId('hook', hook) ?? '');
      if (!endpoint) throw new Error('not leased');
      return endpoint;
    };
    const endpoint = await claim();
    const { url } = endpoint.row;
    const capacity = { ...endpoint.row, deliveries: 1, bytes: 1_000, testsOnly: false, hasNone: true };
    const [delivery] = await queue.due([capacity], [], 1_000);
    if (!delivery) throw new Error('nothing is due');
    for (const enabled of [false, true]) await account.webhooks.updateEndpoint({ id: hook, enabled });
    if (again) await claim();
    const answer = { at: new Date(), status, latencyMs: 1, response: '' };
    const result = { delivery: delivery.id, attempts: 0, ...answer, newStatus: 'failed', retryInS: null } as const;
    completed.add({ endpoint, url, delivery, result, budget: undefined });
    await completed.record();
    expect((await account.webhooks.listEndpoints({})).endpoints).toMatchObject([{ enabled: true }]);
  },
);
