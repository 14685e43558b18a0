import { Migration } from '@mikro-orm/migrations';

/**
 * Restricts roles other than the owner in the log in Postgres: they may read routes and append scans. Cores log in as
 * the owner, to which policies do not apply.
 */
export class LogPerTopic extends Migration {
  override up(): void {
    this.addSql(`
      alter table log_records enable row level security;
      create policy routes on log_records for select using (topic = 'signpost.routes.v1');
      alter table log_partitions enable row level security;
      create policy routes on log_partitions for select using (topic = 'signpost.routes.v1');

      -- One statement, so one transaction that no slow client can hold open. Partitions are locked in their order,
      -- whatever the plan: none can be moved before it was locked. Index: log_partitions_pkey. The arrays hold the
      -- records in the order of publishing.
      create function log_append(
        to_topic text, is_compacted boolean,
        partitions integer[], keys text[], all_headers jsonb[], all_values bytea[]
      ) returns void language sql
      begin atomic
        with sent as materialized (
          select partition, key, headers, value, row_number() over (partition by partition order by turn) - 1 as nth
          from unnest(partitions, keys, all_headers, all_values) with ordinality
            as sent (partition, key, headers, value, turn)
        ), locked as materialized (
          select partition from log_partitions where topic = to_topic and partition = any(partitions)
          order by partition for update
        ), moved as (
          update log_partitions p set next = p.next + counted.records
          from locked join (select partition, count(*) as records from sent group by partition) counted using (partition)
          where p.topic = to_topic and p.partition = locked.partition
          returning p.partition, p.next - counted.records as start
        ), appended as (
          insert into log_records (topic, partition, "offset", compacted, key, headers, value)
          select to_topic, partition, start + nth, is_compacted, key, headers, value
          from sent join moved using (partition)
        )
        select pg_notify('signpost_log', to_topic);
      end;

      -- As the owner: whoever may call it can append scans, and neither move a partition nor write a record otherwise.
      create function log_append_scans(partitions integer[], keys text[], all_headers jsonb[], all_values bytea[])
      returns void language sql security definer set search_path = pg_catalog, pg_temp
      begin atomic
        select log_append('signpost.scans.v1', false, partitions, keys, all_headers, all_values);
      end;
      revoke execute on function log_append_scans from public;
    `);
  }
}
