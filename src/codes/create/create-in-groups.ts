import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import { routeOf } from '../../../common/contract/route.ts';
import { promptStatement } from '../../../common/postgres/sql.ts';
import {
  type CreateCodeRequestSchema,
  type CreateCodeResponse,
  CreateCodeResponseSchema,
} from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { commitLimitOf } from '../../access/call-transaction.ts';
import { type Account, callerKey } from '../../access/caller.ts';
import { type KeyedAnswer, STORE_NEW_ANSWERS, TRY_KEY_LOCK } from '../../access/idempotency/key-records.ts';
import { type Call, onceTogether } from '../../access/idempotency/once.ts';
import { expectValid } from '../../calls/validator.ts';
import { listed } from '../../db/columns.ts';
import { rowsOf, WAKE } from '../../events/outbox.ts';
import { recordsOf } from '../announce.ts';
import { codeFrom, TIMED_COLUMNS } from '../code-row.ts';
import type { IsPlatformHost } from '../fields/platform-hosts.ts';
import { ANNOUNCE, ASKED, type CodeWrite, ENDING, HAS_TIME, limitInGroup, writeInGroups } from '../write-in-groups.ts';
import { type NewCode, newCodeRow, readNewCode } from './create-code.ts';
import { newShortCode } from './short-code.ts';

/** A code to create, with everything that is written with it. */
interface CodeCreation extends CodeWrite {
  readonly account: Account;
  /** The idempotency key of the call with its answer; undefined without a key. */
  readonly answer: KeyedAnswer | undefined;
}

/** The columns of `asked` beside those of the code. */
const CALL_COLUMNS = [
  { name: 'code_limit', type: 'bigint', nullable: true },
  { name: 'key', type: 'text', nullable: true },
  { name: 'fingerprint', type: 'bytea', nullable: true },
  { name: 'response', type: 'bytea', nullable: true },
] as const;
const ASKED_COLUMNS = [...TIMED_COLUMNS, ...CALL_COLUMNS];

/**
 * Creates codes of any accounts with their idempotency records and outbox rows, in a transaction of one statement, and
 * returns the ids of those created. Left out, each for a call that is then executed by itself: codes of accounts whose
 * counter another transaction holds, so that a group waits for no lock and can't deadlock; those beyond an account's
 * limit, counted under the lock; those whose short code exists; those whose idempotency key is in flight or was used;
 * and those whose callers stop waiting soon. Postgres ends the transaction when the first of the other callers stops
 * waiting.
 *
 * A group has one call of each idempotency key: the session would get the lock of another one too. A key's record may
 * have been committed after the statement began: then its insert finds it and does nothing. Any other conflict fails
 * the statement. Indexes: code_counts_pkey, codes_short_code_key.
 */
const createGroup = promptStatement<{ id: string }>(
  'codes_create_group',
  `with asked as materialized (
     select *, coalesce(${TRY_KEY_LOCK('account_id::text', 'key')}, true) as unlocked
     from (${ASKED(ASKED_COLUMNS)}) as calls
   ), ending as materialized (
     ${ENDING}
   ), counter as materialized (
     select account_id, live from code_counts where account_id in (select account_id from asked) for update skip locked
   ), chosen as materialized (
     select * from (
       select asked.*, counter.live + row_number() over (partition by account_id) as nth
       from ending cross join asked join counter using (account_id)
       where unlocked and ${HAS_TIME} and not exists (select from codes c where c.short_code = asked.short_code)
     ) as free
     where code_limit is null or nth <= code_limit
   ), stored as (
     ${STORE_NEW_ANSWERS('chosen')}
   ), created as (
     insert into codes (${listed(TIMED_COLUMNS)})
     select ${listed(TIMED_COLUMNS)} from chosen
     where key is null or (account_id, key) in (select account_id, key from stored)
     returning account_id, id
   ), counted as (
     update code_counts c set live = live + number, listed = listed + number
     from (select account_id, count(*) as number from created group by account_id) as new
     where c.account_id = new.account_id
   ), announced as (
     ${ANNOUNCE(ASKED_COLUMNS, 'select id from created')}
   )
   select id, (${WAKE}) as woken from created`,
);

type CreateCall = Call<typeof CreateCodeRequestSchema, typeof CreateCodeResponseSchema>;

/**
 * Returns a function that creates the code of a call by API key together with those of concurrent calls. It resolves to
 * undefined, and has changed nothing, if the call has to be executed by itself: because the request names labels or is
 * invalid, or for one of the reasons at `createGroup`.
 */
export function createInGroups(options: {
  pool: Pool;
  platformUrl: string;
  isPlatformHost: IsPlatformHost;
}): (call: CreateCall) => Promise<CreateCodeResponse | undefined> {
  const { pool, platformUrl, isPlatformHost } = options;
  const createTogether = writeInGroups(pool, createGroup, ASKED_COLUMNS, ({ account, row, answer }: CodeCreation) => ({
    ...row,
    ...answer,
    code_limit: account.codeLimit,
  }));
  return async (call) => {
    const { context, request } = call;
    const caller = context.values.get(callerKey);
    if (caller.kind !== 'key' || request.folder !== undefined || request.tags.length > 0) return undefined;
    const { account, rate } = caller;
    const newCode = await readNewCodeIfValid(call, () => readNewCode(pool, isPlatformHost, account, request));
    if (!newCode) return undefined;
    // Postgres's clock when the call was admitted, so that the event and the answer are known in advance.
    const created_at = new Date(Number(rate.clock));
    const row = newCodeRow(account, newCode, { short_code: newShortCode(), folder: null, tags: [], created_at });
    const code = codeFrom(row, platformUrl, 0);
    const route = routeOf(row);
    const outbox = rowsOf(recordsOf(row, route, code, { type: 'qr.created' }));
    const response = create(CreateCodeResponseSchema, { code, route, warnings: [] });
    const limit = limitInGroup(commitLimitOf(context), rate);
    return onceTogether(call, response, (answer) => {
      const onceInGroup = answer ? `${account.id} ${answer.key}` : row.id;
      return createTogether({ account, ...limit, row, outbox, answer, onceInGroup });
    });
  };
}

/** Undefined if the request is invalid, which the call finds out again by itself, after it has looked for its key. */
async function readNewCodeIfValid(
  { method, request }: CreateCall,
  read: () => Promise<NewCode>,
): Promise<NewCode | undefined> {
  try {
    expectValid(method.input, request);
    return await read();
  } catch {
    return undefined;
  }
}
