import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { encodeId } from '../../common/contract/ids.ts';
import type { DomainStateName } from '../../common/contract/names.ts';
import { run, statement } from '../../common/postgres/sql.ts';
import { recordOwnChange } from '../access/audit.ts';
import type { Database } from '../db/database.ts';
import { lookUp, type Platform } from './look-up.ts';
import { applyDnsResult } from './transition.ts';

/** The background task that checks each domain's DNS records when the domain is due. */
export interface Checks {
  /** Aborts the running look-ups, finishes the running transition, and stops. */
  stop(): Promise<void>;
}

/** Domains that are looked up concurrently. */
const CONCURRENCY = 20;
const IDLE_MS = 1_000;

interface DueRow {
  id: string;
  account_id: string;
  hostname: string;
  token: string;
  state: DomainStateName;
}

/**
 * Leases the due domains of all accounts for a minute: no other process looks them up meanwhile, and they become due again
 * if this process dies or gets no answer from the resolvers. Index: domains_due.
 */
const leaseDue = statement<DueRow>(
  'domains_take_due',
  `update domains set check_at = now() + interval '1 minute'
   where id in (select id from domains where check_at <= now() order by check_at limit ${CONCURRENCY} for update skip locked)
   returning id, account_id, hostname, token, state`,
);

/** Starts the checks, in any number of cores. `changed` is called after a transition, which has written to the outbox. */
export function startChecks(options: {
  database: Database;
  platform: Platform;
  changed(): void;
  logger: Logger;
}): Checks {
  const { platform, changed, logger } = options;
  const { orm, pool } = options.database;
  const stopping = new AbortController();
  const { signal } = stopping;

  /** Checks one group of due domains; returns how many were due. */
  async function checkDue(): Promise<number> {
    const due = await run(pool, leaseDue);
    const results = await Promise.allSettled(due.map((domain) => lookUp(domain, platform, signal)));
    // One after the other, to leave connections for RPCs.
    for (const [index, { id, account_id: accountId, state }] of due.entries()) {
      const result = results[index];
      if (result?.status !== 'fulfilled') continue;
      const updated = await applyDnsResult(orm, { id, accountId }, result.value, (tx, domain) =>
        recordOwnChange(tx, accountId, `domain became ${domain.state}`, encodeId('domain', id)),
      );
      if (updated && updated.state !== state) {
        changed();
        logger.info({ domain: encodeId('domain', id), from: state, to: updated.state }, 'a domain changed its state');
      }
    }
    const unanswered = results.filter(({ status }) => status === 'rejected');
    const [first] = unanswered;
    if (first?.status === 'rejected' && !signal.aborted) {
      logger.warn(
        { err: first.reason, domains: unanswered.length },
        'the DNS resolvers do not answer: domains keep their states',
      );
    }
    return due.length;
  }

  const running = (async () => {
    while (!signal.aborted) {
      const due = await checkDue().catch((error: unknown) => {
        logger.warn({ err: error }, 'due domains could not be checked; trying again in a second');
        return 0;
      });
      if (due < CONCURRENCY) await sleep(IDLE_MS, undefined, { signal }).catch(() => undefined);
    }
  })();

  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
