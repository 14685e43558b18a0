import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { EventType } from '../../common/contract/event-types.ts';
import type { DeliveryStatusName } from '../../common/contract/names.ts';
import { accountOfRow } from '../access/entities.ts';

/** The type of test events. Endpoints cannot subscribe to it, and get nothing else until one of them has succeeded. */
export const TEST_EVENT = 'webhook.test';

/** A webhook endpoint. */
export const EndpointEntity = defineEntity({
  name: 'WebhookEndpoint',
  tableName: 'webhook_endpoints',
  properties: {
    id: p.uuid().primary(),
    accountId: accountOfRow('webhook_endpoints').deleteRule('cascade'),
    url: p.text(),
    events: p.array<EventType>(),
    /** Null while it is enabled. */
    disabledReason: p.text().nullable(),
    /** Whether it is disabled and may have pending deliveries left, which are about to fail; they are not sent. */
    failsPending: p.boolean().default(false),
    /** Whether it is disabled for good and found by no call: its deliveries are being deleted, and it after them. */
    deleted: p.boolean().default(false),
    /** All secrets are encrypted, and read only if a query names them. */
    secret: p.blob().lazy(),
    /** Requests are also signed with it, until `formerUntil`. */
    formerSecret: p.blob().nullable().lazy(),
    formerUntil: p.datetime().nullable(),
    /**
     * Earlier secrets, newest first. Each is valid until `olderUntil` at the same index. Releases up to 1.0 ignore
     * them.
     */
    olderSecrets: p.array().columnType('bytea[]').defaultRaw(`'{}'`).lazy(),
    olderUntil: p.array().columnType('timestamptz[]').defaultRaw(`'{}'`).lazy(),
    /** Time of the first failed attempt since the last success; null while attempts succeed. */
    failingSince: p.datetime().nullable(),
    /** No later than its next attempt is due; null without pending deliveries. */
    dueAt: p.datetime().nullable(),
    /** The process that leases it: no other delivers to it until `leasedUntil`. */
    leasedBy: p.uuid().nullable(),
    leasedUntil: p.datetime().nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
    /** When an attempt first succeeded at its present URL; while it is null, the endpoint gets test events only. */
    verifiedAt: p.datetime().nullable(),
    /** The earliest time of the next attempt while it is failing. */
    attemptAfter: p.datetime().nullable(),
  },
  indexes: [
    {
      name: 'webhook_endpoints_of_account',
      expression: `create index webhook_endpoints_of_account on webhook_endpoints (account_id, id desc)`,
    },
    { name: 'webhook_endpoints_due', properties: ['dueAt'], where: 'due_at is not null' },
    { name: 'webhook_endpoints_unfinished', properties: ['id'], where: 'fails_pending or deleted' },
  ],
});

export type EndpointEntity = InferEntity<typeof EndpointEntity>;

/** The delivery of an event to an endpoint. */
export const DeliveryEntity = defineEntity({
  name: 'WebhookDelivery',
  tableName: 'webhook_deliveries',
  properties: {
    id: p.uuid().primary(),
    endpointId: p
      .manyToOne(EndpointEntity)
      .mapToPk()
      .fieldName('endpoint_id')
      .foreignKeyName('webhook_deliveries_endpoint_id_fkey')
      .deleteRule('cascade'),
    accountId: p.uuid(),
    eventId: p.uuid(),
    eventType: p.text().collation('C'),
    /** The request body, exactly as sent and signed. Up to 60 KB, and read only if a query names it. */
    body: p.text().lazy(),
    status: p
      .text()
      .collation('C')
      .$type<DeliveryStatusName>()
      .default('pending')
      .check(`status in ('pending', 'succeeded', 'failed')`),
    /** Attempts since it was created or last resent: its position on the retry schedule. */
    attempts: p.integer().default(0),
    nextAttemptAt: p.datetime().nullable().defaultRaw('now()'),
    createdAt: p.datetime().defaultRaw('now()'),
  },
  checks: [{ name: 'webhook_deliveries_check', expression: `(status = 'pending') = (next_attempt_at is not null)` }],
  uniques: [{ name: 'webhook_deliveries_endpoint_id_event_id_key', properties: ['endpointId', 'eventId'] }],
  indexes: [
    {
      name: 'webhook_deliveries_listed',
      expression: `create index webhook_deliveries_listed on webhook_deliveries (endpoint_id, id desc)`,
    },
    { name: 'webhook_deliveries_due', properties: ['endpointId', 'nextAttemptAt'], where: `status = 'pending'` },
    {
      name: 'webhook_deliveries_failed',
      expression: `create index webhook_deliveries_failed on webhook_deliveries (endpoint_id, id desc) where status = 'failed'`,
    },
    {
      name: 'webhook_deliveries_tests',
      properties: ['endpointId', 'nextAttemptAt'],
      where: `status = 'pending' and event_type = '${TEST_EVENT}'`,
    },
  ],
});

export type DeliveryEntity = InferEntity<typeof DeliveryEntity>;

/** An attempt of a delivery, with its outcome. */
export const AttemptEntity = defineEntity({
  name: 'WebhookAttempt',
  tableName: 'webhook_attempts',
  properties: {
    deliveryId: p
      .manyToOne(DeliveryEntity)
      .mapToPk()
      .fieldName('delivery_id')
      .foreignKeyName('webhook_attempts_delivery_id_fkey')
      .deleteRule('cascade')
      .primary(),
    at: p.datetime().primary(),
    /** HTTP status; null without a response. */
    status: p.integer().nullable(),
    latencyMs: p.integer(),
    response: p.text(),
  },
});

export type AttemptEntity = InferEntity<typeof AttemptEntity>;

/** How many attempts an account may make to its throttled endpoints on a host; see `attempt-budgets.ts`. */
export const AttemptBudgetEntity = defineEntity({
  name: 'WebhookAttemptBudget',
  tableName: 'webhook_attempt_budgets',
  properties: {
    accountId: p.uuid().primary(),
    host: p.text().collation('C').primary(),
    spentUntil: p.datetime(),
  },
});
