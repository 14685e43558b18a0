import { raw } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { newUuid } from '../../common/contract/ids.ts';
import { BURST_LIMIT } from '../../common/contract/limits.ts';
import { hashApiKey, newApiKey } from '../access/api-key.ts';
import { ApiKeyEntity, MeterEntity } from '../access/entities.ts';

/**
 * Issues a new API key for an account. The key is only returned, never stored; its hash replaces that of the old key,
 * which is invalid from the commit on, as admission looks keys up without a cache. The rate limit starts with an empty
 * window. `accountId`: UUID.
 */
export async function replaceKey(em: EntityManager, accountId: string): Promise<string> {
  const key = newApiKey();
  const createdAt = raw('now()');
  await em.upsert(ApiKeyEntity, { accountId, id: newUuid(), hash: hashApiKey(key), createdAt });
  const admissions = raw(`array_fill(0::bigint, array[${BURST_LIMIT}])`);
  await em.nativeUpdate(MeterEntity, { accountId }, { admissions, turn: 1 });
  return key;
}

/** Revokes an account's key from the commit on. `accountId`: UUID. */
export async function revokeKey(em: EntityManager, accountId: string): Promise<void> {
  await em.nativeDelete(ApiKeyEntity, { accountId });
}
