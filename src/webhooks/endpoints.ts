import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { failure } from '../../common/contract/errors.ts';
import { decodeId, encodeId } from '../../common/contract/ids.ts';
import { expectBelowLimit } from '../../common/contract/limits.ts';
import { first, type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { type Endpoint, EndpointSchema } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { lockAccount } from '../access/lock-account.ts';
import { EVENT_TYPES, type EventType } from '../events/cloud-event.ts';

// Through SQL and not the ORM, whose statements show their values: an endpoint's row has secrets, and its address may.

/** An endpoint as its owner sees it. */
export interface EndpointRow {
  readonly id: string;
  readonly url: string;
  readonly events: EventType[];
  /** Null while it is enabled. */
  readonly disabled_reason: string | null;
  /** When it first answered at this address; null: it gets test events only. */
  readonly verified_at: Date | null;
  /** The first failure since its last success; null while it succeeds. */
  readonly failing_since: Date | null;
  readonly created_at: Date;
}

const COLUMNS = 'id, url, events, disabled_reason, verified_at, failing_since, created_at';

const insert = statement<EndpointRow>(
  'webhooks_insert_endpoint',
  `insert into webhook_endpoints (id, account_id, url, events, secret) values ($1, $2, $3, $4, $5) returning ${COLUMNS}`,
);

/** Index, here and below: webhook_endpoints_of_account. */
const count = statement<{ present: number }>(
  'webhooks_count_endpoints',
  'select count(*)::integer as present from webhook_endpoints where account_id = $1',
);

const list = statement<EndpointRow>(
  'webhooks_list_endpoints',
  `select ${COLUMNS} from webhook_endpoints where account_id = $1 order by id desc`,
);

/** Index, here and below: webhook_endpoints_pkey. */
const lock = statement<EndpointRow>(
  'webhooks_lock_endpoint',
  `select ${COLUMNS} from webhook_endpoints where id = $1 and account_id = $2 for no key update`,
);

const find = statement<EndpointRow>(
  'webhooks_endpoint',
  `select ${COLUMNS} from webhook_endpoints where id = $1 and account_id = $2`,
);

/** $6: whether it is as good as new. Then it has another five days. */
const update = statement<EndpointRow>(
  'webhooks_update_endpoint',
  `update webhook_endpoints set url = $3, events = $4, disabled_reason = $5,
     verified_at = case when not $6 then verified_at end,
     failing_since = case when not $6 then failing_since end,
     attempt_after = case when not $6 then attempt_after end
   where id = $1 and account_id = $2 returning ${COLUMNS}`,
);

const remove = statement<{ id: string }>(
  'webhooks_delete_endpoint',
  'delete from webhook_endpoints where id = $1 and account_id = $2 returning id',
);

const rotate = statement<{ id: string }>(
  'webhooks_rotate_secret',
  `update webhook_endpoints set former_secret = secret, former_until = now() + interval '24 hours', secret = $3
   where id = $1 and account_id = $2 returning id`,
);

/** Indexes: webhook_endpoints_pkey, webhook_deliveries_due. What waited is given up, and can be sent again. */
const disable = statement<{ id: string }>(
  'webhooks_disable_endpoint',
  `with disabled as (
     update webhook_endpoints set disabled_reason = $3, due_at = null, leased_by = null, leased_until = null
     where id = $1 and account_id = $2 and disabled_reason is null returning id
   ), given_up as (
     update webhook_deliveries d set status = 'failed', next_attempt_at = null
     from disabled where d.endpoint_id = disabled.id and d.status = 'pending'
   )
   select id from disabled`,
);

/** Adds an endpoint. Fails with LIMIT_REACHED. `account`, here and below: UUID; `id` too. */
export async function insertEndpoint(
  tx: Queryable,
  {
    id,
    account,
    url,
    events,
    secret,
  }: { id: string; account: string; url: string; events: EventType[]; secret: Buffer },
): Promise<EndpointRow> {
  await lockAccount(tx, account);
  expectBelowLimit('webhook endpoints', found(await first(tx, count, [account])).present);
  return found(await first(tx, insert, [id, account, url, events, secret]));
}

/** The account's endpoints, newest first. */
export function listEndpoints(on: Queryable, account: string): Promise<EndpointRow[]> {
  return run(on, list, [account]);
}

/**
 * Holds an endpoint until the transaction ends. Whoever changes an endpoint or gives it deliveries locks it first, so
 * that nobody waits for anybody who waits.
 */
export async function lockEndpoint(tx: Queryable, account: string, id: string): Promise<EndpointRow> {
  return found(await first(tx, lock, [id, account]));
}

/** One of the account's endpoints. */
export async function findEndpoint(on: Queryable, account: string, id: string): Promise<EndpointRow> {
  return found(await first(on, find, [id, account]));
}

/** What may be changed of an endpoint. */
export interface EndpointChange extends Pick<EndpointRow, 'id' | 'url' | 'events' | 'disabled_reason'> {
  /** It has to answer a test event before it gets anything else. */
  readonly unverified: boolean;
}

/** Writes what may be changed of an endpoint. To disable one takes `disableEndpoint`. */
export async function updateEndpoint(
  tx: Queryable,
  account: string,
  { id, url, events, disabled_reason, unverified }: EndpointChange,
): Promise<EndpointRow> {
  return found(await first(tx, update, [id, account, url, events, disabled_reason, unverified]));
}

/** Disables an endpoint that is enabled; tells whether it was. */
export async function disableEndpoint(tx: Queryable, account: string, id: string, reason: string): Promise<boolean> {
  return (await first(tx, disable, [id, account, reason])) !== undefined;
}

/** Removes an endpoint, its deliveries and their attempts. */
export async function deleteEndpoint(tx: Queryable, account: string, id: string): Promise<void> {
  found(await first(tx, remove, [id, account]));
}

/** Puts a secret in force; the one before signs beside it for 24 hours. */
export async function rotateSecret(tx: Queryable, account: string, id: string, secret: Buffer): Promise<void> {
  found(await first(tx, rotate, [id, account, secret]));
}

/** The UUID of an endpoint that a caller names. */
export function endpointUuid(id: string): string {
  return found(decodeId('hook', id));
}

/** The event types that a caller names. */
export function readEvents(names: readonly string[]): EventType[] {
  return names.map((name) => {
    const type = EVENT_TYPES.find((known) => known === name);
    if (!type) throw failure('INVALID_FIELD', `events: each must be one of ${EVENT_TYPES.join(', ')}.`);
    return type;
  });
}

export function endpointMessage(endpoint: EndpointRow): Endpoint {
  const { id, url, events, disabled_reason, verified_at, failing_since, created_at } = endpoint;
  return create(EndpointSchema, {
    id: encodeId('hook', id),
    url,
    events,
    enabled: disabled_reason === null,
    disabledReason: disabled_reason ?? '',
    createdAt: timestampFromDate(created_at),
    ...(verified_at && { verifiedAt: timestampFromDate(verified_at) }),
    ...(failing_since && { failingSince: timestampFromDate(failing_since) }),
  });
}

function found<Value>(value: Value | undefined): Value {
  if (value === undefined) throw failure('NOT_FOUND', 'This account has no such webhook endpoint.');
  return value;
}
