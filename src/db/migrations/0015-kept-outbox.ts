import { Migration } from '@mikro-orm/migrations';

/** Slots of six hours each, which rows of the outbox use in rotation. */
const SLOTS = Array.from({ length: 15 }, (_, slot) => slot);

/** Published rows of the outbox are kept for a while and then deleted slot by slot. */
export class KeptOutbox extends Migration {
  override up(): void {
    this.addSql(`
      alter table outbox rename to outbox_before;
      alter sequence outbox_id_seq rename to outbox_before_id_seq;

      -- Rows are inserted, read once along their numbers, and truncated with their slot: nothing is updated, and deleted
      -- only where nothing is kept.
      create table outbox (
        id bigint generated always as identity,
        at timestamptz not null default clock_timestamp(),
        slot smallint not null default floor(date_part('epoch', clock_timestamp()) / 21600)::bigint % ${SLOTS.length},
        topic text not null,
        key text not null,
        headers jsonb not null default '{}',
        value bytea
      ) partition by list (slot);
      create index outbox_id on outbox (id);
      ${SLOTS.map(
        (slot) => `
      create table outbox_${slot} partition of outbox for values in (${slot})
        -- Vacuum would freeze pages that are truncated within days.
        with (autovacuum_vacuum_insert_threshold = -1);`,
      ).join('')}

      -- How far the relay has published: every number up to last, but for those in holes, which may still turn up.
      create table outbox_position (
        single boolean primary key default true check (single),
        last bigint not null,
        holes int8multirange not null
      ) with (fillfactor = 50);
      insert into outbox_position (last, holes) values (0, '{}');

      insert into outbox (topic, key, headers, value)
      select topic, key, headers, value from outbox_before order by id;
      drop table outbox_before;

      -- What waits for the relay. Index: outbox_id.
      create view outbox_waiting as
      select o.* from outbox o where o.id > (select last from outbox_position)
      union all
      select o.* from outbox_position p cross join unnest(p.holes) as hole
        join outbox o on o.id >= lower(hole) and o.id < upper(hole);

      -- A row while the topic of routes lacks some that were published to a former topic of its name.
      create table routes_due (single boolean primary key default true check (single));
    `);
  }
}
