/**
 * Names of the metadata of calls to the core, in which a mistake would go unnoticed. Source: docs/internal-callers.md,
 * "Authentication and metadata".
 */
export const METADATA = {
  /** The account, `acct_…`, that an internal caller acts for, its member, `mbr_…`, and who is behind the call. */
  account: 'signpost-account',
  member: 'signpost-member',
  actor: 'signpost-actor',
  /** Until when a change may commit, in ms since 1970 by Postgres's clock. */
  commitBy: 'signpost-commit-by',
  idempotencyKey: 'idempotency-key',
  /** Of gateways: the hash of the REST request, by which retries with the key are recognised. */
  fingerprint: 'idempotency-fingerprint',
  /** Of gateways: the number of a batch's rows, and the REST request with its status if it succeeds. */
  rows: 'signpost-rows',
  request: 'signpost-request',

  /** Of responses: whether they repeat the first one with the key. */
  replay: 'idempotent-replay',
  /** Of responses to API keys: the monthly quota, and Postgres's clock in ms since 1970. */
  rateLimit: 'ratelimit-limit',
  rateRemaining: 'ratelimit-remaining',
  rateReset: 'ratelimit-reset',
  clock: 'signpost-clock',
} as const;
