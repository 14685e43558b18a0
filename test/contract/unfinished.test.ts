import pg from 'pg';
import { expect, test } from 'vitest';
import { AccountsService, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { TargetsService } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { afterFile } from '../harness/after-file.ts';
import { contract, TARGET } from './client.ts';
import { internal } from './internal.ts';

/** Nothing works in the background, so whatever is not finished stays so. */
const api = contract({ env: { ROLES: 'rpc', BATCH_WINDOW_MS: '0' } });

test('a viewer sees which batches and changes of targets are unfinished', async () => {
  const pool = new pg.Pool({ connectionString: api.signpost.databaseUrl });
  afterFile(() => pool.end());
  const account = await api.account();
  const { member } = await internal(api.signpost, AccountsService, account.id).addMember({
    email: 'anna@example.com',
    role: Role.VIEWER,
  });
  const batches = internal(api.signpost, BatchesService, account.id, member?.id);
  const targets = internal(api.signpost, TargetsService, account.id, member?.id);
  const asService = internal(api.signpost, TargetsService, account.id);
  for (let n = 0; n < 2; n++) {
    await account.call('POST', '/batches', { json: { rows: [{ target_url: TARGET }] } });
    const code = { case: 'externalRef', value: 'table 1' } as const;
    await asService.changeTargets({ rows: [{ code, targetUrl: TARGET }] });
  }
  // As if a core had been stopped while it applied them.
  await pool.query('update target_changes set completed_at = null');
  const [batch] = (await batches.listBatches({ unfinished: true, limit: 1 })).batches;
  const [change] = (await targets.listTargetChanges({ unfinished: true, limit: 1 })).changes;
  expect(await batches.listBatches({ unfinished: true })).toMatchObject({ total: 2n, batches: [batch, {}] });
  for (const table of ['batches', 'target_changes']) {
    await pool.query(`update ${table} set completed_at = now() where id = (select max(id::text)::uuid from ${table})`);
  }
  const [otherBatch] = (await batches.listBatches({ offset: 1 })).batches;
  expect(await batches.listBatches({ unfinished: true })).toMatchObject({ total: 1n, batches: [otherBatch] });
  expect(await batches.listBatches({})).toMatchObject({ total: 2n, batches: [{ id: batch?.id }, otherBatch] });
  const { changes } = await targets.listTargetChanges({});
  expect(changes[0]?.id).toBe(change?.id);
  expect((await targets.listTargetChanges({ unfinished: true })).changes).toEqual(changes.slice(1));
});
