import { expect, test } from 'vitest';
import { transaction } from '../../../common/postgres/sql.ts';
import { CodesService } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { codesServices } from '../codes-services.fixture.ts';
import { deleteAccountCodes, eraseAccountCodes } from './delete-account-codes.ts';

const { createCode } = CodesService.method;
const codes = codesServices();

test('codes are erased from the newest to the oldest, as other transactions lock several codes', async () => {
  const of = await codes.newTenant();
  const pool = codes.pool();
  for (const targetUrl of ['https://example.com/1', 'https://example.com/2']) {
    await codes.call(createCode, { targetUrl }, { of });
  }
  await deleteAccountCodes(pool, 'https://go.example', of.id);
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  const oldest = 'select from codes where account_id = $1 order by id limit 1 for update';
  const unlocked = 'select from codes where account_id = $1 for update skip locked';
  let erased: Promise<void> | undefined;
  await transaction(pool, async (tx) => {
    await tx.query(oldest, [of.id]);
    erased = eraseAccountCodes(pool, of.id);
    await expect.poll(async () => (await pool.query(waiting)).rowCount).toBe(1);
    // Only the oldest, which this transaction holds.
    expect((await tx.query(unlocked, [of.id])).rowCount).toBe(1);
  });
  await erased;
  const { rows } = await pool.query('select distinct target_url from codes where account_id = $1', [of.id]);
  expect(rows).toEqual([{ target_url: null }]);
});
