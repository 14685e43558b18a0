import type { QueryResultRow } from 'pg';
import { type Statement, statement } from '../postgres/sql.ts';

/** Runs statements over a reader's connection, one at a time. */
export type RunQuery = <Row extends QueryResultRow>(what: Statement<Row>, values: readonly unknown[]) => Promise<Row[]>;

/** The channel on which publishers announce topics with new records, and members that they have joined. */
export const LOG_CHANNEL = 'signpost_log';

/** The payload that announces a new member of a group of the topic. */
export function joinedPayload(topic: string): string {
  return `${topic} joined`;
}

/**
 * How often a member checks the membership: the partitions of a lost member are reassigned within about this time. A
 * member that has all partitions has none to take over: it checks when another joins, and otherwise at each poll after
 * this time.
 */
const REBALANCE_MS = 1_000;
const ALONE_MS = 9_000;

/**
 * Advisory locks of a group: a shared one that all members hold, which lists them, and an exclusive one for each
 * partition, held by its reader. They are released with their connection.
 */
const GROUP = `hashtext($1 || ' ' || $2)`;
const PRESENCE = 2_147_483_647;

const join = statement(
  'log_join',
  `select pg_advisory_lock_shared(${GROUP}, ${PRESENCE}), pg_notify('${LOG_CHANNEL}', $3)`,
);

/** The nth member is assigned every partition whose number modulo the number of members is n. */
const shareOf = statement<{ partition: number }>(
  'log_share',
  `with members as (
     select pid, row_number() over (order by pid) - 1 as nth, count(*) over () as members from pg_locks
     where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
       and classid = (${GROUP}::bigint & 4294967295)::oid and objid = ${PRESENCE} and objsubid = 2 and granted
   )
   select partition from log_partitions join members on partition % members = nth
   where topic = $2 and pid = pg_backend_pid()`,
);

const claim = statement<{ partition: number }>(
  'log_claim',
  `select partition from unnest($3::integer[]) partition where pg_try_advisory_lock(${GROUP}, partition)`,
);

const release = statement(
  'log_release',
  `select pg_advisory_unlock(${GROUP}, partition) from unnest($3::integer[]) partition`,
);

/** Read after the partitions were claimed, so that their last reader's commits are visible. Index: log_groups_pkey. */
const offsetsOf = statement<{ partition: number; offset: string }>(
  'log_offsets',
  `select partition, "offset" from log_groups where "group" = $1 and topic = $2 and partition = any($3::integer[])`,
);

/** A membership of a group, over one connection. */
export interface Membership {
  /** The next call of `rebalance` checks the membership. */
  changed(): void;
  /**
   * Updates `positions` to the partitions assigned to this member, those in flight included. Queries Postgres at most
   * once a second; returns after how many ms at most it must be called again, if other members have partitions too.
   */
  rebalance(
    positions: Map<number, bigint>,
    topic: { readonly partitions: number; readonly inFlight: ReadonlySet<number> },
  ): Promise<number | undefined>;
}

/** Joins a group over the connection that `query` uses. */
export async function joinGroup(query: RunQuery, group: string, topic: string): Promise<Membership> {
  await query(join, [group, topic, joinedPayload(topic)]);
  let checkedAt = Number.NEGATIVE_INFINITY;
  /** The number of partitions assigned to this member. */
  let assigned = 0;

  async function rebalance(positions: Map<number, bigint>, inFlight: ReadonlySet<number>): Promise<void> {
    checkedAt = performance.now();
    const share = new Set((await query(shareOf, [group, topic])).map(({ partition }) => partition));
    assigned = share.size;
    const surplus = [...positions.keys()].filter((partition) => !share.has(partition) && !inFlight.has(partition));
    if (surplus.length > 0) {
      for (const partition of surplus) positions.delete(partition);
      await query(release, [group, topic, surplus]);
    }
    const wanted = [...share].filter((partition) => !positions.has(partition));
    if (wanted.length > 0) {
      const claimed = (await query(claim, [group, topic, wanted])).map(({ partition }) => partition);
      const offsets = await query(offsetsOf, [group, topic, claimed]);
      for (const partition of claimed) {
        positions.set(partition, BigInt(offsets.find((each) => each.partition === partition)?.offset ?? 0));
      }
    }
  }

  return {
    changed() {
      checkedAt = Number.NEGATIVE_INFINITY;
    },
    async rebalance(positions, { partitions, inFlight }) {
      // `positions` may still have partitions in flight that are assigned to others.
      const hasAll = () => partitions > 0 && assigned === partitions && positions.size === partitions;
      const dueIn = () => checkedAt + (hasAll() ? ALONE_MS : REBALANCE_MS) - performance.now();
      if (dueIn() <= 0) await rebalance(positions, inFlight);
      return hasAll() ? undefined : Math.max(dueIn(), 0);
    },
  };
}
