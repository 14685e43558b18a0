import { Migration } from '@mikro-orm/migrations';

/** The Monday of a day's week, as 1 January 2018 was one. */
const WEEK = `day - (day - date '2018-01-01') % 7`;

/** The name of a dimension's value in a row of several. The dimensions have different initials. */
const NAME = 'left(dimension::text, 1) || value';

/** Fills `scan_rollups`, which is empty, from the counters of codes and days. */
export const ROLL_UP = `
  insert into scan_rollups (subject_id, days, start, account_id, names, counts)
  select code_id, 7, week, account_id, array_agg(name), array_agg(scans)
  from (
    select code_id, account_id, ${WEEK} as week, ${NAME} as name, sum(scans)::bigint as scans
    from scan_values group by 1, 2, 3, 4
  ) counted group by 1, 3, 4;
  insert into scan_rollups (subject_id, days, start, account_id, scans, unique_scans, names, counts)
  select account_id, 1, day, account_id, d.scans, d.unique_scans, v.names, v.counts
  from (
    select account_id, day, sum(scans) as scans, sum(unique_scans) as unique_scans from scan_days group by 1, 2
  ) d left join (
    select account_id, day, array_agg(name) as names, array_agg(scans) as counts
    from (
      select account_id, day, ${NAME} as name, sum(scans)::bigint as scans from scan_values group by 1, 2, 3
    ) counted group by 1, 2
  ) v using (account_id, day);
  insert into scan_rollups (subject_id, days, start, account_id, names, counts)
  select account_id, 7, week, account_id, array_agg(name), array_agg(scans)
  from (
    select account_id, ${WEEK.replaceAll('day', 'start')} as week, name, sum(scans)::bigint as scans
    from (
      select account_id, start, unnest(names) as name, unnest(counts) as scans from scan_rollups where days = 1
    ) named group by 1, 2, 3
  ) counted group by 1, 3;`;

/**
 * Counters of accounts and of weeks. Triggers note changes to the counters of a code's days, so that scans recorded by
 * the previous version are counted too while both versions run. Recorders add the noted changes to these counters.
 */
export class ScanRollups extends Migration {
  override up(): void {
    this.addSql(`
      -- Recorders wait, so that nothing is counted between the sums and the triggers.
      lock table scan_days, scan_values in share row exclusive mode;

      -- How the counters of a code's day changed, until it is folded into scan_rollups. Rows are only inserted and
      -- deleted: recorders whose codes are of one account do not wait for each other.
      create table scan_increments (
        id bigint generated always as identity primary key,
        account_id uuid not null,
        code_id uuid not null,
        day date not null,
        scans bigint not null default 0,
        unique_scans bigint not null default 0,
        -- The initial of the dimension and the value; counts has as many elements.
        names text[] collate "C" not null default '{}',
        counts bigint[] not null default '{}'
      );
      create index scan_increments_of_code on scan_increments (account_id, code_id);

      -- Scans of a code or an account in a week from Monday on (days = 7), and of an account in a day (days = 1): there
      -- may be several rows, which add up. The days of a code are in scan_days and scan_values. Only rows of days have
      -- scans and unique_scans.
      create table scan_rollups (
        id bigint generated always as identity primary key,
        subject_id uuid not null,
        days smallint not null check (days in (1, 7)),
        start date not null,
        account_id uuid not null,
        scans bigint not null default 0,
        unique_scans bigint not null default 0,
        names text[] collate "C" not null default '{}',
        counts bigint[] not null default '{}'
      );
      create index scan_rollups_of_subject on scan_rollups (subject_id, days, start);
      ${ROLL_UP}

      create function note_scan_days() returns trigger language plpgsql as $body$
      begin
        if tg_op = 'INSERT' then
          insert into scan_increments (account_id, code_id, day, scans, unique_scans)
          select account_id, code_id, day, scans, unique_scans from added;
        elsif tg_op = 'DELETE' then
          insert into scan_increments (account_id, code_id, day, scans, unique_scans)
          select account_id, code_id, day, -scans, -unique_scans from removed;
        else
          insert into scan_increments (account_id, code_id, day, scans, unique_scans)
          select account_id, code_id, day, sum(scans), sum(unique_scans)
          from (
            select account_id, code_id, day, scans, unique_scans from added
            union all
            select account_id, code_id, day, -scans, -unique_scans from removed
          ) changed
          group by 1, 2, 3;
        end if;
        return null;
      end $body$;

      create function note_scan_values() returns trigger language plpgsql as $body$
      begin
        if tg_op = 'INSERT' then
          insert into scan_increments (account_id, code_id, day, names, counts)
          select account_id, code_id, day, array_agg(${NAME}), array_agg(scans) from added group by 1, 2, 3;
        elsif tg_op = 'DELETE' then
          insert into scan_increments (account_id, code_id, day, names, counts)
          select account_id, code_id, day, array_agg(${NAME}), array_agg(-scans) from removed group by 1, 2, 3;
        else
          insert into scan_increments (account_id, code_id, day, names, counts)
          select account_id, code_id, day, array_agg(${NAME}), array_agg(scans)
          from (
            select account_id, code_id, day, dimension, value, sum(scans)::bigint as scans
            from (
              select account_id, code_id, day, dimension, value, scans from added
              union all
              select account_id, code_id, day, dimension, value, -scans from removed
            ) changed
            group by 1, 2, 3, 4, 5
          ) changes
          group by 1, 2, 3;
        end if;
        return null;
      end $body$;

      ${['days', 'values']
        .map(
          (of) => `
      create trigger note_inserted after insert on scan_${of} referencing new table as added
        for each statement execute function note_scan_${of}();
      create trigger note_updated after update on scan_${of} referencing new table as added old table as removed
        for each statement execute function note_scan_${of}();
      create trigger note_deleted after delete on scan_${of} referencing old table as removed
        for each statement execute function note_scan_${of}();`,
        )
        .join('')}
    `);
  }
}
