import { LockMode, UniqueConstraintViolationException } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { DomainStateName } from '../../common/contract/names.ts';
import type { CommitLimit } from '../../common/postgres/commit-limit.ts';
import type { Queryable } from '../../common/postgres/sql.ts';
import type { Database } from '../db/database.ts';
import { connectionOf, ormTransaction } from '../db/orm-transaction.ts';
import { domainLive } from '../events/events.ts';
import { DomainEntity, domainMessage } from './domain.ts';
import type { Seen } from './look-up.ts';
import { publishHost } from './publish-host.ts';

/** Which domain; UUIDs. */
export type DomainKey = Pick<DomainEntity, 'id' | 'accountId'>;

/** Leaves in the audit who moved a domain, within the transaction that does. */
export type Witness = (tx: Queryable, domain: DomainEntity) => Promise<void>;

/** How soon a domain is checked again: one that serves, and the others, sooner the younger their state, in ms. */
const LIVE_AGAIN_MS = 10 * 60_000;
const AGAIN_AT_LEAST_MS = 30_000;
const AGAIN_AT_MOST_MS = 6 * 3_600_000;

/**
 * Moves a domain by what was seen of it, step by step, each in a transaction of its own; undefined when it is gone.
 * What was seen of a state that it has left meanwhile is worth nothing and changes nothing. `limit`: where a call asks
 * for it.
 *
 * The state is written before a version is drawn: whoever becomes verified waits there for the commit that removed the
 * hostname from another account, so its version is above that removal's.
 */
export async function moveDomain(
  orm: Database['orm'],
  key: DomainKey,
  seen: Seen,
  witness: Witness,
  limit?: CommitLimit,
): Promise<DomainEntity | undefined> {
  try {
    const { domain, moved } = await ormTransaction(orm, (em) => moveOnce(em, key, seen, witness), limit);
    return domain && moved ? moveDomain(orm, key, { ...seen, from: domain.state }, witness, limit) : domain;
  } catch (error) {
    if (!(error instanceof UniqueConstraintViolationException)) throw error;
    const problem = 'Another account has proven this hostname, and has to remove it first.';
    return moveDomain(orm, key, { from: 'pending', proven: false, resolves: undefined, problem }, witness, limit);
  }
}

async function moveOnce(em: EntityManager, key: DomainKey, seen: Seen, witness: Witness) {
  const domain = (await em.findOne(DomainEntity, key, { lockMode: LockMode.PESSIMISTIC_WRITE })) ?? undefined;
  if (domain?.state !== seen.from) return { domain, moved: false };
  const now = Date.now();
  const next = nextState(seen);
  const moved = next !== domain.state;
  domain.problem = seen.problem;
  if (moved) {
    const tx = connectionOf(em);
    domain.state = next;
    domain.stateSince = new Date(now);
    await em.flush();
    domain.version = await publishHost(em, domain, { failing: next !== 'live' });
    if (next === 'live' && domain.firstLiveAt === null) {
      domain.firstLiveAt = new Date(now);
      await domainLive(tx, domain.accountId, domainMessage(domain));
    }
    await witness(tx, domain);
  }
  domain.checkAt = new Date(now + againIn(domain, now));
  return { domain, moved };
}

function nextState({ from, proven, resolves }: Seen): DomainStateName {
  if (from === 'pending') return proven ? 'verified' : 'pending';
  if (resolves === undefined) return from;
  if (resolves) return 'live';
  return from === 'live' ? 'failing' : from;
}

function againIn({ state, stateSince }: DomainEntity, now: number): number {
  if (state === 'live') return LIVE_AGAIN_MS;
  const tenth = (now - stateSince.getTime()) / 10;
  return Math.min(Math.max(tenth, AGAIN_AT_LEAST_MS), AGAIN_AT_MOST_MS);
}
