import { raw } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { newUuid } from '../../common/contract/ids.ts';
import { hashApiKey, newApiKey } from '../access/api-key.ts';
import { ApiKeyEntity, MeterEntity } from '../access/entities.ts';

/**
 * Gives an account a new key, which is returned and kept nowhere. Its hash takes the place of the old one, which is dead
 * from this commit on: admission looks keys up and caches none. A new key starts with an empty window. `accountId`: UUID.
 */
export async function replaceKey(em: EntityManager, accountId: string): Promise<string> {
  const key = newApiKey();
  const createdAt = raw('now()');
  await em.upsert(ApiKeyEntity, { accountId, id: newUuid(), hash: hashApiKey(key), createdAt });
  const admissions = raw('array_fill(0::bigint, array[120])');
  await em.nativeUpdate(MeterEntity, { accountId }, { admissions, turn: 1 });
  return key;
}

/** Leaves an account without a key, from this commit on. `accountId`: UUID. */
export async function revokeKey(em: EntityManager, accountId: string): Promise<void> {
  await em.nativeDelete(ApiKeyEntity, { accountId });
}
