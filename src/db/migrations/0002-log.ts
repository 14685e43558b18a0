import { Migration } from '@mikro-orm/migrations';

/** The log for installations without Kafka: topics, partitions, records, and the offsets of consumer groups. */
export class Log extends Migration {
  override up(): void {
    this.addSql(`
      create table log_topics (
        name text primary key,
        partitions integer not null,
        -- Keeps the newest record of each key for ever; the others keep all records for retention_ms.
        compacted boolean not null,
        retention_ms bigint
      );

      -- Publishers lock these rows in order, so that offsets become visible without gaps.
      create table log_partitions (
        topic text not null references log_topics on delete cascade,
        partition integer not null,
        next bigint not null default 0,
        -- Up to here, what newer records replace has been deleted (compacted topics only).
        clean bigint not null default 0,
        primary key (topic, partition)
      ) with (fillfactor = 50);

      create table log_records (
        topic text not null,
        partition integer not null,
        "offset" bigint not null,
        compacted boolean not null,
        key text collate "C" not null,
        headers jsonb not null,
        value bytea,
        at timestamptz not null default clock_timestamp(),
        primary key (topic, partition, "offset")
      );
      create index log_records_by_key on log_records (topic, partition, key, "offset") where compacted;
      create index log_records_tombstones on log_records (at) where compacted and value is null;

      create table log_groups (
        "group" text not null,
        topic text not null,
        partition integer not null,
        "offset" bigint not null,
        primary key ("group", topic, partition)
      ) with (fillfactor = 50);
    `);
  }
}
