import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { encodeId } from '../../common/contract/ids.ts';
import type { DomainStateName } from '../../common/contract/names.ts';
import { run, statement } from '../../common/postgres/sql.ts';
import { recordOwnChange } from '../access/audit.ts';
import type { Database } from '../db/database.ts';
import { lookUp, type Platform } from './look-up.ts';
import { moveDomain } from './transition.ts';

/** Looks domains up again, each when it is due. */
export interface Checks {
  /** Gives up the look-ups in hand, finishes the move in hand, and stops. */
  stop(): Promise<void>;
}

/** Domains that are looked up at the same time. */
const AT_ONCE = 20;
const IDLE_MS = 1_000;

interface DueRow {
  id: string;
  account_id: string;
  hostname: string;
  token: string;
  state: DomainStateName;
}

/**
 * Takes what is due for a minute: nobody else looks it up meanwhile, and it comes again when whoever took it died or
 * heard nothing of the resolvers. Of all accounts. Index: domains_due.
 */
const take = statement<DueRow>(
  'domains_take_due',
  `update domains set check_at = now() + interval '1 minute'
   where id in (select id from domains where check_at <= now() order by check_at limit ${AT_ONCE} for update skip locked)
   returning id, account_id, hostname, token, state`,
);

/** Starts checking; any number of cores may. `changed`: called after a move, as the outbox has something to carry. */
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

  /** Returns how many were due. */
  async function round(): Promise<number> {
    const due = await run(pool, take);
    const looked = await Promise.allSettled(due.map((domain) => lookUp(domain, platform, signal)));
    // One after the other: calls want the connections, too.
    for (const [index, { id, account_id: accountId, state }] of due.entries()) {
      const outcome = looked[index];
      if (outcome?.status !== 'fulfilled') continue;
      const moved = await moveDomain(orm, { id, accountId }, outcome.value, (tx, domain) =>
        recordOwnChange(tx, accountId, `domain became ${domain.state}`, encodeId('domain', id)),
      );
      if (moved && moved.state !== state) {
        changed();
        logger.info({ domain: encodeId('domain', id), from: state, to: moved.state }, 'a domain moved');
      }
    }
    const unheard = looked.filter(({ status }) => status === 'rejected');
    const [first] = unheard;
    if (first?.status === 'rejected' && !signal.aborted) {
      logger.warn(
        { err: first.reason, domains: unheard.length },
        'the resolvers do not answer: domains keep their states',
      );
    }
    return due.length;
  }

  const running = (async () => {
    while (!signal.aborted) {
      const due = await round().catch((error: unknown) => {
        logger.warn({ err: error }, 'domains are checked again in a second');
        return 0;
      });
      if (due < AT_ONCE) await sleep(IDLE_MS, undefined, { signal }).catch(() => undefined);
    }
  })();

  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
