import { timestampMs } from '@bufbuild/protobuf/wkt';
import { batchJson } from '../../common/contract/batch-json.ts';
import { codeJson, timeJson } from '../../common/contract/code-json.ts';
import type { EventType } from '../../common/contract/event-types.ts';
import { encodeId } from '../../common/contract/ids.ts';
import { nameOf, ROLE_BY_NAME } from '../../common/contract/names.ts';
import type { Queryable } from '../../common/postgres/sql.ts';
import { policyToJson } from '../../common/targets/policy-to-json.ts';
import type { Member } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import type { Batch } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import type { Code } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Domain } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { postgresNow } from '../db/clock.ts';
import { cloudEvent } from './cloud-event.ts';
import { addToOutbox, type OutboxRecord } from './outbox.ts';

/** A change of a code. `changed`: names of the changed fields, for `qr.updated`. */
export interface CodeChange {
  readonly type: Extract<EventType, `qr.${string}`>;
  readonly changed?: readonly string[];
}

/**
 * Creates `qr.created`, `qr.updated` or `qr.archived` for the outbox. It is returned and not written, because it is
 * written together with the code's route, and for a batch with all others. `accountId`, here and below: UUID.
 */
export function codeEvent(accountId: string, code: Code, { type, changed }: CodeChange): OutboxRecord {
  const data = {
    ...codeJson(code),
    ...(code.policy ? { policy: policyToJson(code.policy) } : {}),
    short: `/r/${code.shortCode}`,
    ...(changed ? { changed } : {}),
  };
  if (!code.updatedAt) throw new Error('a code has no time of its change');
  return cloudEvent({
    type,
    accountId: encodeId('acct', accountId),
    subject: code.id,
    at: timestampMs(code.updatedAt),
    data,
    sequence: data.version,
  });
}

/** Writes `bulk.completed` in the transaction that finishes the batch's last row, once per batch. */
export function bulkCompleted(tx: Queryable, accountId: string, batch: Batch): Promise<void> {
  return emit(tx, 'bulk.completed', accountId, batch.id, batchJson(batch));
}

/** Writes `domain.live` in the transaction that makes the domain live. */
export function domainLive(tx: Queryable, accountId: string, domain: Domain): Promise<void> {
  const { id, hostname } = domain;
  const data = { id, hostname, state: 'live', created_at: timeJson(domain.createdAt) };
  return emit(tx, 'domain.live', accountId, id, data);
}

/** Writes `team.member_added` in the transaction that adds the member. */
export function memberAdded(tx: Queryable, accountId: string, member: Member): Promise<void> {
  return emit(tx, 'team.member_added', accountId, member.id, memberJson(member));
}

/** Writes `team.member_removed` in the transaction that removes the member. */
export function memberRemoved(tx: Queryable, accountId: string, member: Member): Promise<void> {
  return emit(tx, 'team.member_removed', accountId, member.id, memberJson(member));
}

async function emit(tx: Queryable, type: EventType, accountId: string, subject: string, data: unknown): Promise<void> {
  const at = await postgresNow(tx);
  await addToOutbox(tx, [cloudEvent({ type, accountId: encodeId('acct', accountId), subject, at, data })]);
}

function memberJson({ id, email, role, createdAt }: Member) {
  return { id, email, role: nameOf(ROLE_BY_NAME, role), created_at: timeJson(createdAt) };
}
