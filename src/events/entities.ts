import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

const SLOT = `((floor((date_part('epoch'::text, clock_timestamp()) / (21600)::double precision)))::bigint % (15)::bigint)`;

/**
 * A record to be published to the log, written in the transaction of its change. The table has one partition per slot;
 * `outbox-retention.ts` empties them one at a time.
 */
export const OutboxEntity = defineEntity({
  name: 'Outbox',
  tableName: 'outbox',
  properties: {
    id: p.bigint('string').primary().generated('identity'),
    at: p.datetime().defaultRaw('clock_timestamp()'),
    slot: p.smallint().defaultRaw(SLOT),
    topic: p.text(),
    key: p.text(),
    headers: p.json<Record<string, string>>().defaultRaw(`'{}'`),
    value: p.blob().nullable(),
  },
  indexes: [{ name: 'outbox_id', properties: ['id'] }],
});

export type OutboxEntity = InferEntity<typeof OutboxEntity>;

/** How far the relay has published: all ids up to `last`, except those in `holes`. One row. */
export const OutboxPositionEntity = defineEntity({
  name: 'OutboxPosition',
  tableName: 'outbox_position',
  properties: {
    single: p.boolean().primary().default(true).check('single'),
    last: p.bigint('string'),
    holes: p.string().columnType('int8multirange'),
  },
});

/** Contains a row while a newly created routes topic does not have all current routes yet. */
export const RoutesDueEntity = defineEntity({
  name: 'RoutesDue',
  tableName: 'routes_due',
  properties: { single: p.boolean().primary().default(true).check('single') },
});
