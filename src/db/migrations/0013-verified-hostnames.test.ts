import { fromBinary } from '@bufbuild/protobuf';
import { expect, onTestFinished, test } from 'vitest';
import { decodeId, newUuid } from '../../../common/contract/ids.ts';
import { RouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { entities } from '../../entities.ts';
import { openDatabase } from '../database.ts';

test('verified hostnames stay with their last account, and those unknown to gateways are published', async () => {
  const database = await openDatabase((await freshDatabase()).url, 3, entities);
  onTestFinished(() => database.close());
  const { pool } = database;
  // The schema of the previous version.
  await pool.query('drop table verified_hostnames');
  await pool.query(`delete from migrations where name = '0013-verified-hostnames'`);
  const [first, second] = [newUuid(), newUuid()];
  for (const id of [first, second]) {
    await pool.query(`insert into accounts (id, name, plan) values ($1, 'Test', 'business')`, [id]);
  }
  for (const [hostname, state, wasLive] of [
    ['pending.example', 'pending', false],
    ['verified.example', 'verified', false],
    ['live.example', 'live', true],
    ['failing.example', 'failing', true],
  ]) {
    await pool.query(
      `insert into domains (id, account_id, hostname, token, state, first_live_at)
       values ($1, $2, $3, 't', $4, case when $5 then now() end)`,
      [newUuid(), first, hostname, state, wasLive],
    );
  }
  // Removed domains: only the codes printed on them are left.
  for (const [hostname, account, age] of [
    [null, first, '1 day'],
    ['removed.example', second, '3 days'],
    ['removed.example', first, '2 days'],
    ['live.example', second, '1 day'],
  ]) {
    await pool.query(
      `insert into codes (id, account_id, type, short_code, hostname, created_at)
       values ($1, $2, 'static', substr(md5(random()::text), 1, 7), $3, now() - $4::interval)`,
      [newUuid(), account, hostname, age],
    );
  }

  await database.migrate();

  const { rows: kept } = await pool.query('select hostname, account_id from verified_hostnames order by hostname');
  expect(kept).toEqual(
    ['failing.example', 'live.example', 'removed.example', 'verified.example'].map((hostname) => ({
      hostname,
      account_id: first,
    })),
  );
  const { rows } = await pool.query<{ topic: string; key: string; value: Buffer }>('select * from outbox order by key');
  expect(rows.map(({ topic, key }) => `${topic} ${key}`)).toEqual([
    'signpost.routes.v1 host:removed.example',
    'signpost.routes.v1 host:verified.example',
  ]);
  const hosts = rows.map(({ value }) => {
    const { version, entry } = fromBinary(RouteSchema, value);
    expect(version).toBeGreaterThan(0n);
    return entry.case === 'host' ? entry.value : undefined;
  });
  expect(hosts).toMatchObject([
    { hostname: 'removed.example', removed: true, failing: false },
    { hostname: 'verified.example', removed: false, failing: true },
  ]);
  expect(hosts.map((host) => decodeId('acct', host?.accountId ?? ''))).toEqual([first, first]);
});
