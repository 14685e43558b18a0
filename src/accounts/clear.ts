import type { Pool } from 'pg';
import { first, run, statement } from '../../common/postgres/sql.ts';

/** What a module does when an account was closed. Repeatable: continues after an interruption. Takes a UUID. */
export type Clearing = (accountId: string) => Promise<void>;

interface Closed {
  id: string;
  delete_data: boolean;
}

/** How long whoever clears an account has it to itself, in minutes; two at once would only be in each other's way. */
const LEASE = `interval '5 minutes'`;

/** Index: accounts_to_clear. */
const takeDue = statement<Closed>(
  'accounts_take_due',
  `update accounts set clear_at = now() + ${LEASE}
   where id = (select id from accounts where clear_at <= now() order by clear_at limit 1 for update skip locked)
   returning id, delete_data`,
);

/** Index: accounts_pkey. */
const take = statement<Closed>(
  'accounts_take',
  `update accounts set clear_at = now() + ${LEASE} where id = $1 and closed_at is not null returning id, delete_data`,
);

/**
 * Calls that were in hand when it was closed, batches, and gateways that were cut off with scans in their spool may add
 * something later. So it is looked at again after a minute, then as long after as it has been closed, at most a day,
 * until nothing can be on its way any more. Index: accounts_pkey.
 */
const lookAgain = statement(
  'accounts_look_again',
  `update accounts set clear_at =
     case when closed_at > now() - interval '35 days'
          then now() + least(greatest(now() - closed_at, interval '1 minute'), interval '1 day') end
   where id = $1`,
);

/** Clears up after closed accounts. */
export interface Clearance {
  /** Clears this one now; gives when everything is done. */
  clear(accountId: string): Promise<void>;
  /** Clears those that are due, one after the other. */
  sweep(): Promise<void>;
}

/** `stop` is done for every closed account, `erase` for those whose data is to be deleted, each in its order. */
export function clearance(
  pool: Pool,
  { stop, erase }: { readonly stop: readonly Clearing[]; readonly erase: readonly Clearing[] },
): Clearance {
  async function work({ id, delete_data }: Closed): Promise<void> {
    for (const clearing of [...stop, ...(delete_data ? erase : [])]) await clearing(id);
    await run(pool, lookAgain, [id]);
  }
  return {
    async clear(accountId) {
      const closed = await first(pool, take, [accountId]);
      if (closed) await work(closed);
    },
    async sweep() {
      for (let due = await first(pool, takeDue); due; due = await first(pool, takeDue)) await work(due);
    },
  };
}
