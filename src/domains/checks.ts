import type { Logger } from 'pino';
import { encodeId } from '../../common/contract/ids.ts';
import type { DomainStateName } from '../../common/contract/names.ts';
import { first, promptStatement, run } from '../../common/postgres/sql.ts';
import { attemptEach } from '../../common/runtime/attempt-each.ts';
import { repeatUntilStopped } from '../../common/runtime/repeat-until-stopped.ts';
import { throttledFailures, throttledReport } from '../../common/runtime/throttled-report.ts';
import { recordOwnChange } from '../access/audit.ts';
import type { Database } from '../db/database.ts';
import type { Notifications } from '../db/notifications.ts';
import { lookUp, type Platform } from './look-up.ts';
import { applyDnsResult, nextCheck } from './transition.ts';

/** The background task that checks each domain's DNS records when the domain is due. */
export interface Checks {
  /** Aborts the running look-ups, finishes the running transition, and stops. */
  stop(): Promise<void>;
}

/** Domains that are looked up concurrently. */
const CONCURRENCY = 20;
/** How often due domains are looked for while notifications don't arrive, and after a failure, in ms. */
const POLL_MS = 1_000;
/** The interval of reports about look-ups that fail, in ms: a domain's own name servers may be unavailable for ever. */
const REPORT_MS = 60_000;

interface DueRow {
  id: string;
  account_id: string;
  hostname: string;
  token: string;
  state: DomainStateName;
}

/**
 * Leases due domains of all accounts for a minute: no other process looks them up meanwhile, and they become due again
 * if this process dies or the results can't be applied. Index: domains_due.
 */
const leaseDue = promptStatement<DueRow>(
  'domains_lease_due',
  `update domains set check_at = now() + interval '1 minute'
   where id in (select id from domains where check_at <= now() order by check_at limit ${CONCURRENCY} for update skip locked)
   returning id, account_id, hostname, token, state`,
);

/**
 * Postpones the check of a domain whose look-up failed. Those whose name servers never answer become due less and less
 * often, like others: look-ups of such domains take seconds, in which others wait. Index: domains_pkey.
 */
const postpone = promptStatement(
  'domains_postpone',
  `update domains set check_at = ${nextCheck('1 minute')} where id = $1`,
);

/**
 * The time until the next domain is due, in ms; negative if it was skipped because it was locked. Index: domains_due.
 */
const timeToNext = promptStatement<{ wait: number }>(
  'domains_time_to_next',
  'select (extract(epoch from check_at - now()) * 1000)::float8 as wait from domains order by check_at limit 1',
);

/** Starts the checks, in any number of cores. */
export function startChecks(options: {
  database: Database;
  platform: Platform;
  notifications: Notifications;
  logger: Logger;
}): Checks {
  const { platform, notifications, logger } = options;
  const { orm, pool } = options.database;
  const wakeup = notifications.wakeup('domains', POLL_MS);

  const reportUnanswered = throttledReport(REPORT_MS, (lookUps, latest: { err: unknown; domain: string }) =>
    logger.warn({ ...latest, lookUps }, 'the DNS records of a domain could not be looked up: it keeps its state'),
  );

  /**
   * Checks one group of due domains. Returns the time until the next one is due, in ms; undefined if there is none.
   * Rejects with the first failure, after trying to apply the other results.
   */
  async function checkDue(signal: AbortSignal): Promise<number | undefined> {
    const due = await run(pool, leaseDue);
    const results = await Promise.allSettled(due.map((domain) => lookUp(domain, platform, signal)));
    if (signal.aborted) return 0;
    const unanswered = due.flatMap(({ id }, index) => {
      const result = results[index];
      return result?.status === 'rejected' ? [{ err: result.reason, domain: encodeId('domain', id) }] : [];
    });
    const [latest] = unanswered;
    if (latest) reportUnanswered(unanswered.length, latest);
    // One after the other, to leave connections for RPCs.
    await attemptEach(due.entries(), async ([index, { id, account_id: accountId, state }]) => {
      const result = results[index];
      if (!result || signal.aborted) return;
      if (result.status === 'rejected') {
        await run(pool, postpone, [id]);
        return;
      }
      const updated = await applyDnsResult(orm, { id, accountId }, result.value, (tx, domain) =>
        recordOwnChange(tx, accountId, `domain became ${domain.state}`, encodeId('domain', id)),
      );
      if (updated && updated.state !== state) {
        logger.info({ domain: encodeId('domain', id), from: state, to: updated.state }, 'a domain changed its state');
      }
    });
    return due.length === CONCURRENCY ? 0 : (await first(pool, timeToNext))?.wait;
  }

  const reportFailure = throttledFailures((fields) =>
    logger.warn(fields, 'due domains could not be checked; trying again in a second'),
  );
  return repeatUntilStopped(
    async (signal) => {
      const wait = await checkDue(signal);
      if (wait !== 0) await wakeup.wait(wait && Math.max(wait, POLL_MS));
    },
    { retryMs: POLL_MS, onError: reportFailure, onStop: () => wakeup.notify() },
  );
}
