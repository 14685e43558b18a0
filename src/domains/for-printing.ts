import type { Pool } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { first, type Queryable, statement } from '../../common/postgres/sql.ts';

/** A custom domain that codes can be printed on. `id` is a UUID. */
export interface PrintedDomain {
  readonly id: string;
  readonly hostname: string;
}

/** Index: domains_pkey. */
const find = statement<PrintedDomain>(
  'domains_for_printing',
  'select id, hostname from domains where id = $1 and account_id = $2 and state = any($3)',
);

/** States on which one code may be created. Source: docs/contract.md, "Domains". */
export const FOR_ONE_CODE = ['verified', 'live', 'failing'] as const;

/** States on which a batch may be created. */
export const FOR_A_BATCH = ['live'] as const;

/** The account's domain, in one of the states; fails with UNKNOWN_DOMAIN, never falls back to the platform's. */
export async function domainForPrinting(
  on: Queryable,
  accountId: string,
  domainId: string,
  states: readonly string[],
): Promise<PrintedDomain> {
  const id = decodeId('domain', domainId);
  const domain = id === undefined ? undefined : await first(on, find, [id, accountId, states]);
  if (!domain) {
    throw failure('UNKNOWN_DOMAIN', `domain_id: must be a domain of this account that is ${states.join(' or ')}.`);
  }
  return domain;
}

/** Index: domains_of_account. */
const serves = statement(
  'domains_serves',
  `select from domains where hostname = $1 and account_id = $2 and state in ('verified', 'live')`,
);

/**
 * Whether a hostname that codes were printed on can still be resolved: not failing, not gone. By its name and not by
 * the domain's id: a domain that was removed and added anew serves what was printed before.
 */
export async function domainResolves(pool: Pool, accountId: string, hostname: string): Promise<boolean> {
  return (await first(pool, serves, [hostname, accountId])) !== undefined;
}
