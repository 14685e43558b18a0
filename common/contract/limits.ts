import { failure } from './errors.ts';

/**
 * What an account has at most, whatever its plan and whatever is set by contract. Source: docs/contract.md, "Who may call"; the
 * limit of members is ours, so that no list of an account grows without end.
 */
export const LIMITS = { folders: 10_000, tags: 10_000, domains: 100, 'webhook endpoints': 50, members: 1_000 } as const;

/** Rows of a batch, whatever the plan. Source: docs/contract.md, "Limits". */
export const MAX_BATCH_ROWS = 25_000;

/** What is limited. */
export type Limited = keyof typeof LIMITS;

/** The limit as the main clause of a sentence. */
export function limitClause(what: Limited): string {
  return `an account has at most ${LIMITS[what].toLocaleString('en')} ${what}`;
}

/** Fails with LIMIT_REACHED when the account, which the transaction has locked, has as many of them as it may. */
export function expectBelowLimit(what: Limited, present: number): void {
  if (present < LIMITS[what]) return;
  throw failure('LIMIT_REACHED', `Remove one first: ${limitClause(what)}.`, { limit: String(LIMITS[what]) });
}
