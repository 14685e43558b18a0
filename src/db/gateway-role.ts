import { type Queryable, run, statement } from './sql.ts';

/** The role that gateways log in as where it exists. Whoever runs the server creates it, with its password. */
export const GATEWAY_ROLE = 'signpost_gateway';

/**
 * Least privilege: a gateway looks up where codes lead, without what scans don't show, reads the salts of the visitor hash,
 * and works with the log. No keys, no accounts, no payloads, and nothing to change but the log.
 */
const grant = statement(
  'db_grant_gateway',
  `do $$ begin
     if exists (select from pg_roles where rolname = '${GATEWAY_ROLE}') then
       grant select (id, account_id, type, short_code, target_url, landing_page, paused, domain_id, hostname, version,
         deleted_at) on codes to ${GATEWAY_ROLE};
       grant select on domains, log_topics, visitor_salts to ${GATEWAY_ROLE};
       grant select, update on log_partitions to ${GATEWAY_ROLE};
       -- Everybody who uses the log deletes the records that are too old.
       grant select, insert, delete on log_records to ${GATEWAY_ROLE};
     end if;
   end $$`,
);

/** Grants it all, after every migration; a database whose server has no such role is left as it is. */
export async function grantGatewayRole(on: Queryable): Promise<void> {
  await run(on, grant);
}
