import type { QueryResultRow } from 'pg';
import { type Statement, statement } from '../postgres/sql.ts';

/** Runs a statement over a reader's connection, one after the other. */
export type Ask = <Row extends QueryResultRow>(what: Statement<Row>, values: readonly unknown[]) => Promise<Row[]>;

/** How often a member looks who else is there: a member that is gone is replaced within about this time. */
const SHARE_MS = 1_000;

/**
 * Advisory locks of a group: one that all its members share, which shows who they are, and one for each partition,
 * which its reader holds alone. They live as long as the connection that took them.
 */
const GROUP = `hashtext($1 || ' ' || $2)`;
const PRESENCE = 2_147_483_647;

const join = statement('log_join', `select pg_advisory_lock_shared(${GROUP}, ${PRESENCE})`);

/** The nth member has every partition whose number divided by the number of members leaves n. */
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

/** Asked after the partitions were claimed, so that what their last reader committed is seen. Index: log_groups_pkey. */
const offsetsOf = statement<{ partition: number; offset: string }>(
  'log_offsets',
  `select partition, "offset" from log_groups where "group" = $1 and topic = $2 and partition = any($3::integer[])`,
);

/**
 * Joins a group over the connection that `ask` uses. The function that it gives back keeps `positions` at the partitions
 * that are this member's, those in hand included, and asks Postgres at most once a second.
 */
export async function joinGroup(
  ask: Ask,
  group: string,
  topic: string,
): Promise<(positions: Map<number, bigint>, inHand: ReadonlySet<number>) => Promise<void>> {
  await ask(join, [group, topic]);
  let looked = Number.NEGATIVE_INFINITY;
  return async (positions, inHand) => {
    if (performance.now() - looked < SHARE_MS) return;
    looked = performance.now();
    const share = new Set((await ask(shareOf, [group, topic])).map(({ partition }) => partition));
    const surplus = [...positions.keys()].filter((partition) => !share.has(partition) && !inHand.has(partition));
    if (surplus.length > 0) {
      for (const partition of surplus) positions.delete(partition);
      await ask(release, [group, topic, surplus]);
    }
    const wanted = [...share].filter((partition) => !positions.has(partition));
    if (wanted.length > 0) {
      const claimed = (await ask(claim, [group, topic, wanted])).map(({ partition }) => partition);
      const offsets = await ask(offsetsOf, [group, topic, claimed]);
      for (const partition of claimed) {
        positions.set(partition, BigInt(offsets.find((each) => each.partition === partition)?.offset ?? 0));
      }
    }
  };
}
