import type { Pool } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { first, type Queryable, statement } from '../../common/postgres/sql.ts';

/** A custom domain for which codes can be created. `id` is a UUID. */
export interface PrintedDomain {
  readonly id: string;
  readonly hostname: string;
}

/** Index: domains_pkey. */
const find = statement<PrintedDomain>(
  'domains_for_printing',
  'select id, hostname from domains where id = $1 and account_id = $2 and state = any($3)',
);

/** States of a domain in which single codes may be created on it. Source: docs/contract.md, "Domains". */
export const FOR_ONE_CODE = ['verified', 'live', 'failing'] as const;

/** States of a domain in which batches may be created on it. */
export const FOR_A_BATCH = ['live'] as const;

const ALTERNATIVES = new Intl.ListFormat('en-GB', { type: 'disjunction' });

/**
 * The account's domain if it is in one of `states`; otherwise fails with UNKNOWN_DOMAIN, and never falls back to the
 * platform's host.
 */
export async function domainForPrinting(
  on: Queryable,
  accountId: string,
  domainId: string,
  states: readonly string[],
): Promise<PrintedDomain> {
  const id = decodeId('domain', domainId);
  const domain = id === undefined ? undefined : await first(on, find, [id, accountId, states]);
  if (!domain) {
    throw failure(
      'UNKNOWN_DOMAIN',
      `domain_id: must be a domain of this account that is ${ALTERNATIVES.format(states)}.`,
    );
  }
  return domain;
}

/** Index: domains_of_account. */
const findResolving = statement(
  'domains_find_resolving',
  `select from domains where hostname = $1 and account_id = $2 and state in ('verified', 'live')`,
);

/**
 * Whether a hostname in printed codes still resolves: its domain is neither failing nor removed. By name and not by the
 * domain's id: a domain that was removed and added again serves the codes printed before.
 */
export async function domainResolves(pool: Pool, accountId: string, hostname: string): Promise<boolean> {
  return (await first(pool, findResolving, [hostname, accountId])) !== undefined;
}
