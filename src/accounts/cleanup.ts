import type { Pool } from 'pg';
import { first, promptStatement, run, statement } from '../../common/postgres/sql.ts';
import { attemptEach } from '../../common/runtime/attempt-each.ts';

/**
 * One module's step of clearing a closed account. Idempotent, so that it can continue after an interruption. Takes a
 * UUID.
 */
export type ClearStep = (accountId: string) => Promise<void>;

interface Closed {
  id: string;
  delete_data: boolean;
  /** Identifies the lease. */
  clearing_by: string;
}

/** The lease of a core that clears an account: two cores would block each other. */
const LEASE = `interval '5 minutes'`;
/** Interval at which it renews the lease, in ms: an account with a million codes takes much longer. */
const RENEW_MS = 60_000;

/**
 * Leases an account. It is due again when the lease ends, in case the core dies. While both times are equal, nobody has
 * closed it again. Cores of an earlier version know only `clear_at`.
 */
const LEASED = `clear_at = now() + ${LEASE}, clearing_until = now() + ${LEASE}, clearing_by = gen_random_uuid()`;
const COLUMNS = 'id, delete_data, clearing_by';
const NOT_LEASED = '(clearing_until is null or clearing_until <= now())';

/** Index: accounts_to_clear. */
const leaseDue = promptStatement<Closed>(
  'accounts_lease_due',
  `update accounts set ${LEASED}
   where id = (select id from accounts where clear_at <= now() and ${NOT_LEASED}
               order by clear_at limit 1 for update skip locked)
   returning ${COLUMNS}`,
);

/** Index: accounts_pkey. */
const lease = promptStatement<Closed>(
  'accounts_lease',
  `update accounts set ${LEASED} where id = $1 and closed_at is not null and ${NOT_LEASED} returning ${COLUMNS}`,
);

/** Like the statements below, changes nothing of a lease that another core has taken over. Index: accounts_pkey. */
const renew = promptStatement(
  'accounts_renew',
  `update accounts
   set clear_at = case when clear_at = clearing_until then now() + ${LEASE} else clear_at end,
       clearing_until = now() + ${LEASE}
   where id = $1 and clearing_by = $2`,
);

/** For an account that could not be cleared: it is due when the lease would have ended. Index: accounts_pkey. */
const endLease = statement(
  'accounts_end_lease',
  'update accounts set clearing_until = null, clearing_by = null where id = $1 and clearing_by = $2',
);

/**
 * RPCs that were running when the account was closed, batches, and disconnected gateways with scans in their spool may
 * still add data. So it is cleared again after a minute, then after as long as it has been closed, at most a day, until
 * no more data can arrive; at once if it was closed again meanwhile, maybe with its data. Index: accounts_pkey.
 */
const scheduleNext = statement(
  'accounts_schedule_clearing',
  `update accounts set
     clear_at =
       case when clear_at <> clearing_until then clear_at
            when closed_at > now() - interval '35 days'
            then now() + least(greatest(now() - closed_at, interval '1 minute'), interval '1 day') end,
     clearing_until = null, clearing_by = null
   where id = $1 and clearing_by = $2`,
);

/** Clears closed accounts. */
export interface AccountCleanup {
  /** Clears this account now, unless another core is clearing it; resolves when it is done. `accountId`: UUID. */
  clear(accountId: string): Promise<void>;
  /** Clears all accounts that are due, one after the other; then rejects with the first failure. */
  sweep(): Promise<void>;
}

/**
 * `stop` are the steps for every closed account, `erase` those for accounts whose data is to be deleted, both in order.
 */
export function createAccountCleanup(
  pool: Pool,
  { stop, erase }: { readonly stop: readonly ClearStep[]; readonly erase: readonly ClearStep[] },
): AccountCleanup {
  async function clearAccount({ id, delete_data, clearing_by }: Closed): Promise<void> {
    // After failures for five minutes another core continues.
    const renewing = setInterval(() => run(pool, renew, [id, clearing_by]).catch(() => undefined), RENEW_MS);
    try {
      for (const step of [...stop, ...(delete_data ? erase : [])]) await step(id);
    } catch (error) {
      await run(pool, endLease, [id, clearing_by]).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(renewing);
    }
    await run(pool, scheduleNext, [id, clearing_by]);
  }

  /** Leases each account as it is asked for. One that fails is due again in five minutes. */
  async function* dueAccounts(): AsyncGenerator<Closed> {
    for (let due = await first(pool, leaseDue); due; due = await first(pool, leaseDue)) yield due;
  }

  return {
    async clear(accountId) {
      const closed = await first(pool, lease, [accountId]);
      if (closed) await clearAccount(closed);
    },
    async sweep() {
      await attemptEach(dueAccounts(), clearAccount);
    },
  };
}
