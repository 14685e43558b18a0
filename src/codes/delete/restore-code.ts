import type { PoolClient } from 'pg';
import { decodeId } from '../../../common/contract/ids.ts';
import type { Code } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Account } from '../../access/caller.ts';
import { notFound } from '../../calls/not-found.ts';
import { scannedCodeFrom } from '../code-row.ts';
import { findCode, lockCodes } from '../find-code.ts';
import { restoreDeleted } from './restore-codes.ts';

/**
 * Restores a deleted code with all its properties; a dynamic code counts towards the plan's limit again. A code that is
 * not deleted stays unchanged, so a call may be repeated. Fails with NOT_FOUND, QR_LIMIT_REACHED or LIMIT_REACHED.
 */
export async function restoreCode(
  tx: PoolClient,
  platformUrl: string,
  account: Account,
  id: string,
): Promise<{ code: Code; changed: boolean }> {
  const uuid = decodeId('qr', id);
  const [before] = uuid === undefined ? [] : await lockCodes(tx, account.id, [uuid]);
  if (!before) throw notFound('code');
  const isDeleted = before.deleted_at !== null;
  if (isDeleted) {
    const refusal = (await restoreDeleted(tx, platformUrl, account, [before])).get(before.id);
    if (refusal) throw refusal;
  }
  return { code: scannedCodeFrom(await findCode(tx, account.id, id), platformUrl), changed: isDeleted };
}
