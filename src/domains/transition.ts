import { LockMode, raw, UniqueConstraintViolationException } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { DomainStateName } from '../../common/contract/names.ts';
import type { CommitLimit } from '../../common/postgres/commit-limit.ts';
import type { Queryable } from '../../common/postgres/sql.ts';
import type { Database } from '../db/database.ts';
import { connectionOf, ormTransactionWithin } from '../db/orm-transaction.ts';
import { domainLive } from '../events/events.ts';
import { DomainEntity, domainMessage } from './domain.ts';
import type { DnsResult } from './look-up.ts';
import { DOMAIN_PROBLEMS } from './problems.ts';
import { publishHost } from './publish-host.ts';

/** Identifies a domain by UUIDs. */
export type DomainKey = Pick<DomainEntity, 'id' | 'accountId'>;

/** Writes the audit entry of a state change, in the same transaction. */
export type RecordTransition = (tx: Queryable, domain: DomainEntity) => Promise<void>;

/**
 * When a domain is checked next, in SQL, by the clock that finds due ones: ten minutes later if it is live, else after
 * a tenth of its state's age, within bounds.
 */
export const nextCheck = (
  soonest: '30 seconds' | '1 minute',
) => `now() + case when state = 'live' then interval '10 minutes'
  else least(greatest((now() - state_since) / 10, interval '${soonest}'), interval '6 hours') end`;

/**
 * How long a change of state may take, in ms, locks included. For a Postgres that vanishes meanwhile: see `PROMPT_MS`.
 */
const TRANSITION_MS = 20_000;

/**
 * Applies the result of a look-up to a domain: each change of state in its own transaction. Returns the domain,
 * undefined when it has been removed. A result for a state that the domain has left meanwhile changes nothing. `limit`:
 * the deadline of the RPC that it runs in, if any.
 *
 * The state is written before the version is taken from the sequence: a domain that becomes verified waits there for
 * the commit that removes the hostname from another account, so its version exceeds that removal's.
 */
export async function applyDnsResult(
  orm: Database['orm'],
  key: DomainKey,
  result: DnsResult,
  recordTransition: RecordTransition,
  limit?: CommitLimit,
): Promise<DomainEntity | undefined> {
  try {
    const { domain, changed } = await ormTransactionWithin(
      orm,
      TRANSITION_MS,
      (em) => transitionOnce(em, key, result, recordTransition),
      limit,
    );
    return domain && changed
      ? applyDnsResult(orm, key, { ...result, from: domain.state }, recordTransition, limit)
      : domain;
  } catch (error) {
    if (!(error instanceof UniqueConstraintViolationException)) throw error;
    const problem = DOMAIN_PROBLEMS.otherAccount;
    return applyDnsResult(
      orm,
      key,
      { from: 'pending', proven: false, resolves: undefined, problem },
      recordTransition,
      limit,
    );
  }
}

async function transitionOnce(
  em: EntityManager,
  key: DomainKey,
  result: DnsResult,
  recordTransition: RecordTransition,
) {
  const domain = (await em.findOne(DomainEntity, key, { lockMode: LockMode.PESSIMISTIC_WRITE })) ?? undefined;
  if (domain?.state !== result.from) return { domain, changed: false };
  const next = nextState(result);
  const changed = next !== domain.state;
  domain.problem = result.problem;
  if (changed) {
    const tx = connectionOf(em);
    domain.state = next;
    domain.stateSince = raw<Date>('now()');
    await em.flush();
    await publishHost(em, domain, { failing: next !== 'live' });
    if (next === 'live' && domain.firstLiveAt === null) {
      domain.firstLiveAt = domain.stateSince;
      await domainLive(tx, domain.accountId, domainMessage(domain));
    }
    await recordTransition(tx, domain);
  }
  domain.checkAt = raw<Date>(nextCheck('30 seconds'));
  return { domain, changed };
}

function nextState({ from, proven, resolves }: DnsResult): DomainStateName {
  if (from === 'pending') return proven ? 'verified' : 'pending';
  if (resolves === undefined) return from;
  if (resolves) return 'live';
  return from === 'live' ? 'failing' : from;
}
