import type pg from 'pg';

/**
 * Lets background workers insert the rows of one step into a table, and holds them in the next one until the returned
 * function is called.
 */
export async function holdSecondStep(client: pg.Client, table: string): Promise<() => Promise<unknown>> {
  await client.query(`
    create function hold() returns trigger language plpgsql as $$
      begin
        if exists (select from ${table}) then
          set local lock_timeout = 0;
          perform pg_advisory_xact_lock(1);
        end if;
        return null;
      end $$;
    create trigger hold before insert on ${table} for each statement execute function hold();
    select pg_advisory_lock(1)`);
  return () => client.query('select pg_advisory_unlock(1)');
}
