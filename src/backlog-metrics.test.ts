import { metrics } from '@opentelemetry/api';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { newUuid } from '../common/contract/ids.ts';
import { pullReader } from '../common/telemetry/pull-reader.ts';
import { freshDatabase } from '../test/harness/database.ts';
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
  const id = newUuid();
  await pool.query(`insert into accounts (id, name, plan) values ($1, 'A', 'business')`, [id]);
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

test('work of closed accounts, which never continues, does not count as waiting', async () => {
  await accountWithUnfinishedWork('now()');
  const closed = await accountWithUnfinishedWork(`now() - interval '1 day'`);
  await pool.query('update accounts set closed_at = now() where id = $1', [closed]);
  measureBacklogs(pool, new Set(['worker']));
  const { resourceMetrics } = await reader.collect();
  const figures = new Map(
    resourceMetrics.scopeMetrics
      .flatMap((scope) => scope.metrics)
      .map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints[0]?.value]),
  );
  for (const name of ['batches.rows', 'target_changes.rows']) {
    expect(figures.get(`signpost.${name}.waiting`)).toBe(10);
    expect(figures.get(`signpost.${name}.age`)).toBeLessThan(3_600);
  }
});
