import { create } from '@bufbuild/protobuf';
import type { PoolClient } from 'pg';
import { failure } from '../../../common/contract/errors.ts';
import { decodeId } from '../../../common/contract/ids.ts';
import {
  type UpdateCodesRequest,
  type UpdatedCode,
  UpdatedCodeSchema,
  UpdateOutcome,
} from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Account } from '../../access/caller.ts';
import type { CodeRowWithoutContent } from '../code-row.ts';
import { deleteLocked } from '../delete/delete-codes.ts';
import { restoreLocked } from '../delete/restore-codes.ts';
import { lockCodes } from '../find-code.ts';
import type { UpdateResult } from '../update-result.ts';
import { changeFields, type FieldChanges, readFieldChanges } from './change-fields.ts';

/**
 * Makes the same change to many codes of the account, with as many statements as a few codes take, and announces each
 * code that is changed. Returns a result for each requested id. Fails with NO_FIELDS or INVALID_FIELD.
 */
export async function updateCodes(
  tx: PoolClient,
  platformUrl: string,
  account: Account,
  request: UpdateCodesRequest,
): Promise<UpdatedCode[]> {
  const { deleted } = request;
  await tx.query('savepoint labels');
  const changes = await readChanges(tx, account.id, request);
  const uuids = new Map(request.ids.map((id) => [id, decodeId('qr', id)]));
  const distinct = [...new Set(uuids.values())].filter((uuid) => uuid !== undefined);
  const byId = new Map((await lockCodes(tx, account.id, distinct)).map((row) => [row.id, row]));
  // In the order of the request: where a limit allows only some codes to be restored, those are the first.
  const rows = distinct.flatMap((uuid) => byId.get(uuid) ?? []);
  const live = rows.filter((row) => row.deleted_at === null);

  let results: ReadonlyMap<string, UpdateResult>;
  if (changes) results = await changeFields(tx, platformUrl, account.id, live, changes);
  else if (deleted) results = await deleteCodes(tx, platformUrl, account.id, live);
  else results = await restoreLocked(tx, platformUrl, account, rows);
  // Labels that no code has got are not created.
  const isChanged = results.values().some(({ outcome }) => outcome === UpdateOutcome.CHANGED);
  if (!isChanged) await tx.query('rollback to savepoint labels');
  const notFound = { outcome: UpdateOutcome.NOT_FOUND };
  return request.ids.map((id) => create(UpdatedCodeSchema, { id, ...(results.get(uuids.get(id) ?? '') ?? notFound) }));
}

/** Undefined if the codes are to be deleted or restored instead. Labels are locked before codes. */
async function readChanges(
  tx: PoolClient,
  accountId: string,
  request: UpdateCodesRequest,
): Promise<FieldChanges | undefined> {
  const { deleted, paused, folder, addTags, removeTags } = request;
  const changesFields = paused !== undefined || folder !== undefined || addTags.length > 0 || removeTags.length > 0;
  if (deleted === undefined) {
    if (changesFields) return readFieldChanges(tx, accountId, request);
    throw failure('NO_FIELDS', 'Set at least one of paused, folder, add_tags, remove_tags, deleted.');
  }
  if (changesFields) throw failure('INVALID_FIELD', 'deleted: cannot be combined with other changes.');
  return undefined;
}

async function deleteCodes(
  tx: PoolClient,
  platformUrl: string,
  accountId: string,
  live: readonly CodeRowWithoutContent[],
): Promise<ReadonlyMap<string, UpdateResult>> {
  const ids = live.map(({ id }) => id);
  if (ids.length > 0) await deleteLocked(tx, platformUrl, accountId, ids);
  return new Map(ids.map((id) => [id, { outcome: UpdateOutcome.CHANGED }]));
}
