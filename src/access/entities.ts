import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { BURST_LIMIT } from '../../common/contract/limits.ts';
import type { PlanName } from '../../common/contract/names.ts';

/** An account. What is null comes from the plan. */
export const AccountEntity = defineEntity({
  name: 'Account',
  tableName: 'accounts',
  comment: 'What is null here comes from the plan.',
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    plan: p.text().$type<PlanName>().check(`plan in ('free', 'business', 'scale', 'enterprise')`),
    monthlyQuota: p.bigint('number').nullable(),
    codeLimit: p.bigint('number').nullable(),
    batchLimit: p.integer().nullable(),
    featureApi: p.boolean().nullable(),
    featureBulk: p.boolean().nullable(),
    featureImages: p.boolean().nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
    closedAt: p.datetime().nullable(),
    deleteData: p.boolean().default(false),
    /** When what is left of a closed account is cleared next; null while it is open and when nothing can be left. */
    clearAt: p.datetime().nullable(),
    /** Until when a core has the account to itself while it clears it; null when none does. */
    clearingUntil: p.datetime().nullable(),
    /**
     * Identifies the lease that `clearingUntil` ends: a core whose lease was taken over changes nothing of the next
     * one.
     */
    clearingBy: p.uuid().nullable(),
  },
  indexes: [{ name: 'accounts_to_clear', properties: ['clearAt'], where: 'clear_at is not null' }],
});

export type AccountEntity = InferEntity<typeof AccountEntity>;

/** The account that a row of `table` belongs to, as its UUID. */
export const accountOfRow = (table: string) =>
  p
    .manyToOne(AccountEntity)
    .mapToPk()
    .fieldName('account_id')
    .foreignKeyName(`${table}_account_id_fkey`)
    .updateRule('no action')
    .deleteRule('no action');

/** The key of an account, as its hash. */
export const ApiKeyEntity = defineEntity({
  name: 'ApiKey',
  tableName: 'api_keys',
  properties: {
    accountId: accountOfRow('api_keys').primary(),
    id: p.uuid(),
    /** SHA-256 of the key, which is kept nowhere. */
    hash: p.blob().unique('api_keys_hash_key'),
    createdAt: p.datetime().defaultRaw('now()'),
  },
});

/** What an account has used of its limits on requests. One row an account, which every request writes. */
export const MeterEntity = defineEntity({
  name: 'Meter',
  tableName: 'meters',
  properties: {
    accountId: accountOfRow('meters').primary(),
    month: p.date().defaultRaw(`date_trunc('month'::text, (now() AT TIME ZONE 'utc'::text))`),
    used: p.bigint('number').defaultRaw('0'),
    /** A ring of the last `BURST_LIMIT` admissions in ms since 1970; `turn` is the place of the oldest. */
    admissions: p.array().columnType('bigint[]').defaultRaw(`array_fill((0)::bigint, ARRAY[${BURST_LIMIT}])`),
    turn: p.smallint().default(1),
  },
});

/** What a call with an idempotency key was answered. */
export const IdempotencyEntity = defineEntity({
  name: 'Idempotency',
  tableName: 'idempotency',
  properties: {
    accountId: accountOfRow('idempotency').primary(),
    key: p.text().collation('C').primary(),
    fingerprint: p.blob(),
    /** A serialised response; null where it was an error. */
    response: p.blob().nullable(),
    error: p.json<unknown>().nullable(),
    createdAt: p.datetime().defaultRaw('now()').index('idempotency_age'),
  },
});

export type IdempotencyEntity = InferEntity<typeof IdempotencyEntity>;

/** Who changed what and when. */
export const AuditEntryEntity = defineEntity({
  name: 'AuditEntry',
  tableName: 'audit_entries',
  properties: {
    id: p.uuid().primary(),
    accountId: accountOfRow('audit_entries').deleteRule('cascade'),
    at: p.datetime().defaultRaw('now()'),
    actor: p.text(),
    action: p.text(),
    subject: p.text(),
  },
  indexes: [
    {
      name: 'audit_entries_by_account',
      expression: 'create index audit_entries_by_account on audit_entries (account_id, id desc)',
    },
  ],
});

export type AuditEntryEntity = InferEntity<typeof AuditEntryEntity>;

/** How many API requests of an account were recorded, which determines the next slot. */
export const ApiRequestCountEntity = defineEntity({
  name: 'ApiRequestCount',
  tableName: 'api_request_counts',
  properties: {
    accountId: accountOfRow('api_request_counts').primary(),
    recorded: p.bigint('number'),
  },
});

/** The last API requests of an account: a ring of `KEPT_REQUESTS` slots, which are overwritten. */
export const ApiRequestEntity = defineEntity({
  name: 'ApiRequest',
  tableName: 'api_requests',
  properties: {
    accountId: p
      .manyToOne(ApiRequestCountEntity)
      .mapToPk()
      .fieldName('account_id')
      .foreignKeyName('api_requests_account_id_fkey')
      .updateRule('no action')
      .deleteRule('cascade')
      .primary(),
    slot: p.smallint().primary(),
    /** UUIDv7. */
    id: p.uuid(),
    at: p.datetime(),
    /** Empty if a call to the core itself had none. */
    requestId: p.text(),
    method: p.text(),
    /** Without ids, query and anything else that a caller chooses. */
    path: p.text(),
    status: p.smallint(),
    /** From the catalogue of errors; null if the request succeeded. */
    reason: p.text().nullable(),
    durationMs: p.integer(),
  },
});

export type ApiRequestEntity = InferEntity<typeof ApiRequestEntity>;
