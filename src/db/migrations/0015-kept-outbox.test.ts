import { expect, onTestFinished, test } from 'vitest';
import { freshDatabase } from '../../../test/harness/database.ts';
import { entities } from '../../entities.ts';
import { openDatabase } from '../database.ts';

test('messages that waited for the relay still wait, in order and before all new ones', async () => {
  const database = await openDatabase((await freshDatabase()).url, 3, entities);
  onTestFinished(() => database.close());
  const { pool } = database;
  // The schema of the previous version.
  await pool.query(`
    drop view outbox_waiting;
    drop table outbox, outbox_position, routes_due;
    create table outbox (
      id bigint generated always as identity primary key,
      topic text not null,
      key text not null,
      headers jsonb not null default '{}',
      value bytea
    );
    insert into outbox (topic, key, headers, value)
    select 't', 'key ' || nth, '{"ce_id": "evt_1"}', '\\x01' from generate_series(1, 5) as nth;
    delete from outbox where id in (1, 3);
    delete from migrations where name = '0015-kept-outbox'`);

  await database.migrate();

  await pool.query(`insert into outbox (topic, key) values ('t', 'new')`);
  const { rows } = await pool.query(`select key, headers ->> 'ce_id' as event, value from outbox_waiting order by id`);
  expect(rows.map(({ key }) => key)).toEqual(['key 2', 'key 4', 'key 5', 'new']);
  expect(rows[0]).toEqual({ key: 'key 2', event: 'evt_1', value: Buffer.from([1]) });
});
