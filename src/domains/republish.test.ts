import { fromBinary } from '@bufbuild/protobuf';
import { afterAll, expect, test } from 'vitest';
import { RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { insertAccount } from '../../test/harness/insert-account.ts';
import { openDatabase } from '../db/database.ts';
import { statementsOf } from '../db/statements.fixture.ts';
import { entities } from '../entities.ts';
import { republishDomains } from './republish.ts';

const HOSTNAMES = 250;
const VERSION_OFFSET = 1_000_000;

const database = await openDatabase((await freshDatabase()).url, 2, entities);
afterAll(() => database.close());
const { pool } = database;

test('hostnames are republished a hundred per lock, and the versions are raised once', async () => {
  const account = await insertAccount(pool);
  await pool.query(
    `with verified as (
       insert into verified_hostnames select 'menu' || nth || '.example', $1 from generate_series(1, ${HOSTNAMES}) nth
       returning hostname
     )
     insert into domains (id, account_id, hostname, token, state)
     select gen_random_uuid(), $1, hostname, '', 'live' from verified where hostname like '%0.example'`,
    [account],
  );
  const statements = await statementsOf(async () => {
    expect(await republishDomains(database, VERSION_OFFSET)).toBe(HOSTNAMES);
  });
  const count = (sought: string) => statements.filter(({ name }) => name === sought).length;
  expect([count('domains_lock_all'), count('domains_raise_versions')]).toEqual([4, 1]);
  const { rows } = await pool.query<{ key: string; value: Buffer }>('select key, value from outbox');
  const routes = rows.map(({ value }) => fromBinary(RouteSchema, value));
  expect(new Set(rows.map(({ key }) => key)).size).toBe(HOSTNAMES);
  expect(routes.every(({ version }) => version > VERSION_OFFSET)).toBe(true);
  const live = routes.filter(({ entry }) => entry.case === 'host' && !entry.value.removed);
  expect([routes.length, live.length]).toEqual([HOSTNAMES, HOSTNAMES / 10]);
});

test('a stop interrupts republishing after the current hundred', async () => {
  const outbox = async () => (await pool.query('select from outbox')).rowCount ?? 0;
  const before = await outbox();
  const stopping = new AbortController();
  const republishing = republishDomains(database, 0, stopping.signal);
  stopping.abort();
  await expect(republishing).rejects.toThrow('aborted');
  expect((await outbox()) - before).toBe(100);
});
