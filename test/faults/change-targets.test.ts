import pg from 'pg';
import { expect, test } from 'vitest';
import { decodeId } from '../../common/contract/ids.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { TargetChangeStatus, TargetsService } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { internal } from '../contract/internal.ts';
import { afterFile } from '../harness/after-file.ts';
import { holdSecondStep } from '../harness/hold-second-step.ts';
import { startSignpost } from '../harness/processes.ts';

/** Several steps of the background worker. */
const CODES = 12_000;

test('a change whose cores are killed repeatedly completes by itself: each code gets one version and one event', async () => {
  const signpost = await startSignpost({ cores: 2, env: { BATCH_WINDOW_MS: '60000' } });
  const { accountId, apiKey } = await signpost.createAccount({ plan: Plan.ENTERPRISE });
  const client = new pg.Client({ connectionString: signpost.databaseUrl });
  await client.connect();
  afterFile(() => client.end());
  const count = async (sql: string) =>
    Number((await client.query<{ n: string }>(`select count(*) as n from ${sql}`)).rows[0]?.n);

  const rows = Array.from({ length: CODES }, (_, n) => ({ target_url: `https://example.com/${n}` }));
  const headers = { authorization: `Bearer ${apiKey}` };
  await fetch(`${signpost.url}/api/v1/batches`, { method: 'POST', headers, body: JSON.stringify({ rows }) });
  await expect.poll(() => count('codes'), { timeout: 60_000 }).toBe(CODES);
  const { rows: codes } = await client.query<{ short_code: string }>('select short_code from codes order by id');

  const targets = internal(signpost, TargetsService, accountId);
  const request = {
    rows: codes.map((code, n) => ({
      code: { case: 'shortCode', value: code.short_code } as const,
      targetUrl: `https://example.com/${n}/new`,
    })),
  };
  const options = { headers: { 'idempotency-key': 'one' } };
  const release = await holdSecondStep(client, 'target_versions');
  const sent = targets.changeTargets(request, options).catch(() => undefined);
  // The cores die when some targets are changed, but not all.
  await expect.poll(() => count('target_versions'), { interval: 5 }).toBeGreaterThan(0);
  for (const core of signpost.cores) await core.kill();
  await sent;
  expect(await count('codes where target_version > 1')).toBeLessThan(CODES);
  await release();
  for (let round = 0; round < 2; round++) {
    for (const core of signpost.cores) await core.restart();
  }
  const { change } = await targets.changeTargets(request, options);
  const id = change?.id ?? '';
  await expect
    .poll(async () => (await targets.getTargetChange({ id, limit: 1 })).change?.status, {
      timeout: 60_000,
      interval: 200,
    })
    .toBe(TargetChangeStatus.COMPLETED);
  const { change: completed } = await targets.getTargetChange({ id, limit: 1 });
  expect(completed?.counts).toMatchObject({ total: CODES, pending: 0, changed: CODES, unchanged: 0, failed: 0 });
  expect(await count('target_changes')).toBe(1);
  expect(await count('codes where target_version = 2 and version = 2')).toBe(CODES);
  // Version 1 of each code, and the new one.
  expect(await count('target_versions')).toBe(2 * CODES);
  expect(await count(`target_change_rows where change_id = '${decodeId('change', id)}' and version = 2`)).toBe(CODES);
  const events = `(select headers ->> 'ce_id' from outbox where headers ->> 'ce_type' = 'qr.updated'
    union select headers ->> 'ce_id' from log_records where headers ->> 'ce_type' = 'qr.updated') as events`;
  expect(await count(events)).toBe(CODES);
}, 180_000);

test('two workers on one change take turns', async () => {
  const signpost = await startSignpost({ cores: 3, roles: ['rpc', 'relay,recorder,worker', 'worker'] });
  const { accountId, apiKey } = await signpost.createAccount({ plan: Plan.ENTERPRISE });
  const client = new pg.Client({ connectionString: signpost.databaseUrl });
  await client.connect();
  afterFile(() => client.end());
  const rows = Array.from({ length: CODES }, () => ({ target_url: 'https://example.com' }));
  const headers = { authorization: `Bearer ${apiKey}` };
  await fetch(`${signpost.url}/api/v1/batches`, { method: 'POST', headers, body: JSON.stringify({ rows }) });
  const { rows: codes } = await client.query<{ short_code: string }>('select short_code from codes order by id');
  const targets = internal(signpost, TargetsService, accountId);
  const release = await holdSecondStep(client, 'target_versions');
  const sent = targets.changeTargets({
    rows: codes.map((code) => ({
      code: { case: 'shortCode', value: code.short_code } as const,
      targetUrl: 'https://example.com/new',
    })),
  });
  // A second job for the same change, as if it were stalled.
  const again = async () => {
    const { rows: unfinished } = await client.query(
      `select graphile_worker.add_job('target_change_go_on', '{}'::json, job_key := id::text, job_key_mode := 'preserve_run_at')
       from target_changes where completed_at is null`,
    );
    return unfinished.length;
  };
  await expect.poll(again, { interval: 5 }).toBe(1);
  await again();
  await release();
  const { change } = await sent;
  let last = change;
  for await (const { change: seen } of targets.watchTargetChange({ id: change?.id ?? '' })) last = seen;
  expect(last?.counts).toMatchObject({ total: codes.length, changed: codes.length, pending: 0 });
  const { rows: versions } = await client.query('select count(*)::integer as n from target_versions');
  expect(versions).toEqual([{ n: 2 * codes.length }]);
});
