import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { encodeId } from '../../common/contract/ids.ts';
import type { DomainStateName } from '../../common/contract/names.ts';
import type { Notifications } from '../../common/postgres/notifications.ts';
import { first, run, statement } from '../../common/postgres/sql.ts';
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
/** How often to look for domains while notifications don't arrive, and after a failure, in ms. */
const POLL_MS = 1_000;

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

/** In how many ms the next domain is due; negative if it was passed over because it was locked. Index: domains_due. */
const next = statement<{ wait: number }>(
  'domains_next',
  'select (extract(epoch from check_at - now()) * 1000)::float8 as wait from domains order by check_at limit 1',
);

/** Starts checking; any number of cores may. */
export function startChecks(options: {
  database: Database;
  platform: Platform;
  notifications: Notifications;
  logger: Logger;
}): Checks {
  const { platform, notifications, logger } = options;
  const { orm, pool } = options.database;
  const stopping = new AbortController();
  const { signal } = stopping;
  const bell = notifications.bell('domains', POLL_MS);

  /** Returns in how many ms the next domain is due; undefined if there is none. */
  async function round(): Promise<number | undefined> {
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
        logger.info({ domain: encodeId('domain', id), from: state, to: moved.state }, 'a domain moved');
      }
    }
    const unheard = looked.filter(({ status }) => status === 'rejected');
    const [failed] = unheard;
    if (failed?.status === 'rejected' && !signal.aborted) {
      logger.warn(
        { err: failed.reason, domains: unheard.length },
        'the resolvers do not answer: domains keep their states',
      );
    }
    return due.length === AT_ONCE ? 0 : (await first(pool, next))?.wait;
  }

  const running = (async () => {
    while (!signal.aborted) {
      try {
        const wait = await round();
        if (wait !== 0) await bell.wait(wait && Math.max(wait, POLL_MS));
      } catch (error) {
        logger.warn({ err: error }, 'domains are checked again in a second');
        await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  })();

  return {
    async stop() {
      stopping.abort();
      bell.ring();
      await running;
    },
  };
}
