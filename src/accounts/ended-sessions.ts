import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { defineEntity, p } from '@mikro-orm/core';
import type { Pool } from 'pg';
import { run, statement } from '../../common/postgres/sql.ts';
import type { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { transactionOf } from '../access/call-transaction.ts';
import { instantOrFailure } from '../calls/instants.ts';

/** A session of the dashboard that ended before it expired. Of no account: a person may use several in one session. */
export const EndedSessionEntity = defineEntity({
  name: 'EndedSession',
  tableName: 'ended_sessions',
  properties: {
    /** HMAC of what identifies the session, which only the dashboard can compute. */
    key: p.blob().primary(),
    endedAt: p.datetime().defaultRaw('now()').index('ended_sessions_age'),
  },
});

/** In the order of the keys, so that concurrent statements can't deadlock. Index: ended_sessions_pkey. */
const end = statement(
  'accounts_end_sessions',
  `insert into ended_sessions (key) select distinct key from unnest($1::bytea[]) key order by key
   on conflict (key) do update set ended_at = excluded.ended_at`,
);

/** Index: ended_sessions_age. */
const list = statement<{ key: Buffer | null; ended_at: Date; as_of: Date }>(
  'accounts_list_ended_sessions',
  `select s.key, s.ended_at, n.as_of from (select now() as as_of) n left join lateral (
     select key, ended_at from ended_sessions where ended_at >= $1 order by ended_at desc limit 50000
   ) s on true`,
);

/** Index: ended_sessions_age. */
const forget = statement(
  'accounts_delete_ended_sessions',
  `delete from ended_sessions where ended_at < now() - interval '24 hours'`,
);

/** The methods by which instances of the dashboard tell each other which sessions ended. */
export function endedSessions(
  pool: Pool,
): Pick<ServiceImpl<typeof AccountsService>, 'endSessions' | 'listEndedSessions'> {
  return {
    async endSessions({ keys }, context) {
      await transactionOf(context, pool, (tx) => run(tx, end, [keys.map((key) => Buffer.from(key))]));
      return {};
    },
    async listEndedSessions({ since }) {
      const rows = await run(pool, list, [instantOrFailure('since', since) ?? new Date(0)]);
      return {
        sessions: rows.flatMap(({ key, ended_at }) =>
          key === null ? [] : [{ key: new Uint8Array(key), endedAt: timestampFromDate(ended_at) }],
        ),
        asOf: timestampFromDate(rows[0]?.as_of ?? new Date()),
      };
    },
  };
}

/** Deletes what no session needs any more. */
export async function forgetEndedSessions(pool: Pool): Promise<void> {
  await run(pool, forget);
}
