import { type Queryable, run, statement } from './sql.ts';

/** The role that gateways log in as where it exists. */
export const GATEWAY_ROLE = 'signpost_gateway';

/**
 * Least privilege: a gateway reads codes and domains, and works with the log. Granted after every migration; a database
 * without the role is left as it is.
 */
const grant = statement(
  'db_grant_gateway',
  `do $$ begin
     if exists (select from pg_roles where rolname = '${GATEWAY_ROLE}') then
       grant select on codes, domains, log_topics to ${GATEWAY_ROLE};
       grant select, insert, update, delete on log_partitions, log_records, log_groups to ${GATEWAY_ROLE};
     end if;
   end $$`,
);

export async function grantGatewayRole(on: Queryable): Promise<void> {
  await run(on, grant);
}
