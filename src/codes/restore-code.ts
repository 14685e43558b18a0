import { LockMode, raw } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { failure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import type { Code } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Account } from '../access/caller.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { announce } from './announce.ts';
import { scannedCodeFrom } from './code-row.ts';
import { codeLimitReached } from './create-code.ts';
import { CodeCountEntity, CodeEntity } from './entities.ts';
import { findCode } from './find-code.ts';

/**
 * Restores a deleted code with all its properties; a dynamic code counts towards the plan's limit again. A code that is
 * not deleted stays unchanged, so a call may be repeated. Fails with NOT_FOUND or QR_LIMIT_REACHED.
 */
export async function restoreCode(
  em: EntityManager,
  platformUrl: string,
  { id: accountId, codeLimit }: Account,
  id: string,
): Promise<{ code: Code; changed: boolean }> {
  const uuid = decodeId('qr', id);
  const lock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;
  // Locked before the counter, as in a deletion, so that the two cannot deadlock. Index: codes_pkey.
  const before = uuid === undefined ? null : await em.findOne(CodeEntity, { id: uuid, accountId }, lock);
  if (!before) throw failure('NOT_FOUND', 'There is no such code on this account.');
  const deleted = before.deletedAt != null;
  if (deleted) {
    const counts = await em.findOneOrFail(CodeCountEntity, { accountId }, lock);
    if (before.type === 'dynamic') {
      if (codeLimit !== null && counts.live >= codeLimit) throw codeLimitReached(codeLimit, counts.live);
      counts.live += 1;
    }
    counts.listed += 1;
    await em.flush();
    const restored = { deletedAt: null, updatedAt: raw('greatest(updated_at, now())'), version: raw('version + 1') };
    await em.nativeUpdate(CodeEntity, { id: before.id, accountId }, restored);
  }
  const tx = connectionOf(em);
  const row = await findCode(tx, accountId, id);
  const code = scannedCodeFrom(row, platformUrl);
  if (deleted) await announce(tx, row, code, { type: 'qr.updated', changed: ['deleted'] });
  return { code, changed: deleted };
}
