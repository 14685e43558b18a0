import type { Pool } from 'pg';
import { COMMIT_WITHOUT_WAIT, promptStatement, run } from '../../common/postgres/sql.ts';
import { grouped } from '../../common/queues/grouped.ts';
import { limitAtOnce } from '../../common/queues/limit-at-once.ts';
import type { Feature } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import {
  ADMISSIBLE,
  type Admission,
  type AdmissionRow,
  admissionFrom,
  admit,
  type KeyCall,
  METERED,
  parametersOf,
  RATE_COLUMNS,
} from './admit.ts';
import { ACCOUNT } from './find-account.ts';
import { USED } from './usage.ts';

/**
 * Does for calls of different keys what `admitKey` does for one. Meters that other transactions hold are skipped, so
 * that the group waits for no lock, and two groups can't deadlock, whatever the order in which they lock. A meter that
 * has changed since the statement began is read again once it is locked, so its counters are exact. A call that is
 * neither admitted nor rejected by what was read is then admitted by itself. Parameters: those of `admitKey`, as
 * arrays. Indexes: api_keys_hash_key, then primary keys.
 */
const admitKeys = promptStatement<AdmissionRow & { readonly nth: number }>(
  'access_admit_keys',
  `with asked as (
     select * from unnest($1::bytea[], $2::boolean[], $3::boolean[], $4::boolean[], $5::bigint[]) with ordinality
       as asked (hash, needs_api, needs_bulk, needs_images, commit_by, nth)
   ), account as materialized (
     ${ACCOUNT(
       'join api_keys k on k.account_id = a.id join asked on asked.hash = k.hash where a.closed_at is null',
       'needs_api, needs_bulk, needs_images, commit_by, nth::integer as nth,',
     )}
   ), locked as (
     select m.account_id from account join meters m on m.account_id = account.id
     where ${ADMISSIBLE({ api: 'needs_api', bulk: 'needs_bulk', images: 'needs_images', commitBy: 'commit_by' })}
     for no key update of m skip locked
   ), admitted as (
     update meters m set ${METERED} from locked where m.account_id = locked.account_id
     returning m.account_id, m.used
   )
   select account.*,
          coalesce(admitted.used, ${USED}) as used,
          admitted.account_id is not null as admitted,
          ${COMMIT_WITHOUT_WAIT},
          ${RATE_COLUMNS}
   from account join meters m on m.account_id = account.id left join admitted on admitted.account_id = account.id`,
);

const GROUPS = { concurrency: 1, maxSize: 32, maxWaiting: 2_000, items: 'calls' };

/** How many calls of one key may wait for groups, each of which admits one: further ones are admitted by themselves. */
const MAX_WAITING_OF_KEY = 8;

/**
 * Returns a function that admits calls as `admit` does, concurrent ones of different keys in one statement. For keys
 * that are known to be valid: others would fill the groups.
 */
export function admitInGroups(
  pool: Pool,
): (keyHash: Buffer, features: readonly Feature[], commitBy: number | undefined) => Promise<Admission | undefined> {
  /** Counts the calls that are waiting or in a group, by key. */
  const enter = limitAtOnce(MAX_WAITING_OF_KEY);
  const readInGroup = grouped<KeyCall & { readonly key: string }, AdmissionRow | undefined>({
    ...GROUPS,
    keyOf: ({ key }) => key,
    async work(group) {
      const rows = await run(pool, admitKeys, transposed(group.map(parametersOf)));
      const byCall = new Map(rows.map((row) => [row.nth, row]));
      return group.map((_, index) => byCall.get(index + 1));
    },
  });
  return async (keyHash, features, commitBy) => {
    const key = keyHash.toString('latin1');
    const leave = enter(key);
    if (!leave) return admit(pool, keyHash, features, commitBy);
    const row = await readInGroup({ key, keyHash, features, commitBy }).finally(leave);
    if (!row) return undefined;
    return admissionFrom(row, features, commitBy) ?? admit(pool, keyHash, features, commitBy);
  };
}

/** The parameters of `admitKeys`. */
function transposed(calls: readonly ReturnType<typeof parametersOf>[]): unknown[][] {
  return ([0, 1, 2, 3, 4] as const).map((column) => calls.map((call) => call[column]));
}
