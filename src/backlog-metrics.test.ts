import { metrics } from '@opentelemetry/api';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import pg from 'pg';
import { afterAll, expect, test, vi } from 'vitest';
import { newUuid } from '../common/contract/ids.ts';
import { pullReader } from '../common/telemetry/pull-reader.ts';
import { freshDatabase } from '../test/harness/database.ts';
import { insertAccount } from '../test/harness/insert-account.ts';
import { measureBacklogs } from './backlog-metrics.ts';

const { url } = await freshDatabase();
const pool = new pg.Pool({ connectionString: url });
const reader = pullReader();
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
afterAll(async () => {
  metrics.disable();
  await pool.end();
});

async function accountWithUnfinishedWork(createdAt: string): Promise<string> {
  const id = await insertAccount(pool);
  await pool.query(
    `insert into batches (id, account_id, foreground_color, background_color, total, failed, skipped, created_at)
     values ($1, $2, '#000000', '#ffffff', 10, 0, 0, ${createdAt})`,
    [newUuid(), id],
  );
  await pool.query(
    `insert into target_changes (id, account_id, author, note, total, failed, changed, unchanged, dry_run, created_at)
     values ($1, $2, 'api', '', 10, 0, 0, 0, false, ${createdAt})`,
    [newUuid(), id],
  );
  return id;
}

const WAITING = 'signpost.webhooks.backlog.waiting';
const AGE = 'signpost.webhooks.backlog.age';

/** The metrics of a worker, by name. */
async function figures(): Promise<Map<string, unknown>> {
  measureBacklogs(pool, new Set(['worker']));
  const { resourceMetrics } = await reader.collect();
  return new Map(
    resourceMetrics.scopeMetrics
      .flatMap((scope) => scope.metrics)
      .map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints[0]?.value]),
  );
}

test('work of closed accounts, which never continues, does not count as waiting', async () => {
  await accountWithUnfinishedWork('now()');
  const closed = await accountWithUnfinishedWork(`now() - interval '1 day'`);
  await pool.query('update accounts set closed_at = now() where id = $1', [closed]);
  const measured = await figures();
  for (const name of ['batches.rows', 'target_changes.rows']) {
    expect(measured.get(`signpost.${name}.waiting`)).toBe(10);
    expect(measured.get(`signpost.${name}.age`)).toBeLessThan(3_600);
  }
});

test('deliveries that may not be sent yet do not count as due', async () => {
  const account = await accountWithUnfinishedWork('now()');
  const add = async (
    { verifiedAt, attemptAfter }: { verifiedAt?: Date; attemptAfter?: Date },
    types: readonly string[],
  ) => {
    const { rows } = await pool.query<{ id: string }>(
      `insert into webhook_endpoints (id, account_id, url, events, secret, due_at, verified_at, attempt_after)
       values (uuidv7(), $1, 'https://hooks.example.com/', '{qr.created}', '', now(), $2, $3) returning id`,
      [account, verifiedAt, attemptAfter],
    );
    await pool.query(
      `insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body, next_attempt_at)
       select uuidv7(), $1, $2, uuidv7(), type, '{}', now() - interval '1 day' from unnest($3::text[]) as type`,
      [rows[0]?.id, account, types],
    );
  };
  const at = (seconds: number) => new Date(Date.now() + seconds * 1_000);
  await add({ verifiedAt: at(0), attemptAfter: at(300) }, ['qr.created', 'qr.created']);
  await add({}, ['qr.created', 'qr.created']);
  const none = await figures();
  expect([none.get(WAITING), none.get(AGE)]).toEqual([0, 0]);
  await add({ verifiedAt: at(0), attemptAfter: at(-60) }, ['qr.created', 'qr.created']);
  const probed = await figures();
  expect(probed.get(WAITING)).toBe(2);
  expect(probed.get(AGE)).toBeLessThan(3_600);
  await add({}, ['qr.created', 'webhook.test']);
  const tested = await figures();
  expect(tested.get(WAITING)).toBe(3);
  expect(tested.get(AGE)).toBeGreaterThan(3_600);
});

test('due deliveries are counted endpoint by endpoint, also while the statistics know of no pending ones', async () => {
  const account = await accountWithUnfinishedWork('now()');
  await pool.query(
    `insert into webhook_endpoints (id, account_id, url, events, secret, due_at)
     select uuidv7(), $1, 'https://hooks.example.com/', '{qr.created}', '', now() from generate_series(1, 1000)`,
    [account],
  );
  await pool.query(
    `insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body, status, next_attempt_at)
     select uuidv7(), e.id, $1, uuidv7(), 'qr.created', '{}', 'succeeded', null
     from webhook_endpoints e, generate_series(1, 10)`,
    [account],
  );
  await pool.query('analyze webhook_endpoints, webhook_deliveries');
  const query = vi.spyOn(pool, 'query');
  measureBacklogs(pool, new Set(['worker']));
  await reader.collect();
  const texts = query.mock.calls.map(([statement]) => (statement as unknown as { text: string }).text);
  query.mockRestore();
  const text = texts.find((each) => each.includes('webhook_deliveries'));
  const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`explain (costs off) ${text}`);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  for (const index of ['webhook_deliveries_due', 'webhook_deliveries_tests']) {
    expect(plan).toMatch(new RegExp(`${index}.*\\n *Index Cond: \\(?\\(endpoint_id = e\\.id\\)`));
  }
});
