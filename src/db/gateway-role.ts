import { ROUTED_COLUMNS } from '../../common/contract/route.ts';
import { type Queryable, run, statement } from '../../common/postgres/sql.ts';

/** The role that gateways log in as, if it exists. The operator of the server creates it, with its password. */
export const GATEWAY_ROLE = 'signpost_gateway';

/**
 * All privileges of a gateway, kept minimal as it faces the public: look up the targets of codes, read the salts of the
 * visitor hash, follow the routes in the log (policies hide all other topics), and append scans. It can't change tables
 * itself, nor read keys, accounts, payloads or scans.
 */
const GRANTS = [
  `select (${ROUTED_COLUMNS.join(', ')}) on codes`,
  `select (name, partitions, compacted) on log_topics`,
  `select (topic, partition, next) on log_partitions`,
  `select (topic, partition, "offset", key, headers, value, at) on log_records`,
  `select (day, salt) on visitor_salts`,
  `execute on function log_append_scans`,
];

/** First revokes what older versions granted, all in one transaction. */
const grant = statement(
  'db_grant_gateway',
  `do $$
   declare granted regclass;
   begin
     if exists (select from pg_roles where rolname = '${GATEWAY_ROLE}') then
       for granted in
         select distinct c.oid from pg_shdepend d join pg_class c on c.oid = d.objid
         where d.dbid = (select oid from pg_database where datname = current_database())
           and d.classid = 'pg_class'::regclass and d.deptype = 'a'
           and d.refclassid = 'pg_authid'::regclass and d.refobjid = '${GATEWAY_ROLE}'::regrole
           and pg_has_role(c.relowner, 'usage')
       loop
         execute format('revoke all on %s from ${GATEWAY_ROLE}', granted);
       end loop;
       ${GRANTS.map((what) => `grant ${what} to ${GATEWAY_ROLE};`).join('\n       ')}
     end if;
   end $$`,
);

/** Grants exactly these privileges, after every migration; does nothing on a server without the role. */
export async function grantGatewayRole(on: Queryable): Promise<void> {
  await run(on, grant);
}
