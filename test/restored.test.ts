import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { DomainsService } from '../proto/gen/signpost/domains/v1/domains_pb.ts';
import { internal } from './contract/internal.ts';
import { freshDatabase } from './harness/database.ts';
import { startDns } from './harness/dns.ts';
import { insertAccount } from './harness/insert-account.ts';
import { startSignpost } from './harness/processes.ts';

const EVENTUALLY = { interval: 50 };

test('after Postgres was put back from a backup, gateways follow it again: codes, domains, and changes to come', async () => {
  const dns = await startDns();
  const env = { ROLES: 'rpc,relay', PUBLIC_URL: 'https://sign.example', DNS_RESOLVERS: dns.address };
  const signpost = await startSignpost({ env });
  onTestFinished(signpost.stop);
  const pool = new pg.Pool({ connectionString: signpost.databaseUrl });
  onTestFinished(() => pool.end());
  const { accountId, apiKey } = await signpost.createAccount();
  const api = async (method: string, path: string, body: unknown) => {
    const headers = { authorization: `Bearer ${apiKey}` };
    const answer = await fetch(`${signpost.url}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
    return ((await answer.json()) as { data: { id: string; short_code: string } }).data;
  };
  const domains = internal(signpost, DomainsService, accountId);
  const { domain } = await domains.addDomain({ hostname: 'menu.example' });
  const [id, txtValue] = [domain?.id ?? '', domain?.txtValue ?? ''];
  dns.set('_signpost.menu.example', 'TXT', txtValue);
  dns.set('menu.example', 'CNAME', 'sign.example');
  await domains.verifyDomain({ id });
  const code = await api('POST', '/qr-codes', { target_url: 'https://one.example/' });
  const { domain: second } = await domains.addDomain({ hostname: 'removed.example' });
  dns.set('_signpost.removed.example', 'TXT', second?.txtValue ?? '');
  await domains.verifyDomain({ id: second?.id ?? '' });
  await domains.removeDomain({ id: second?.id ?? '' });

  const target = async () =>
    (await fetch(`${signpost.url}/r/${code.short_code}`, { redirect: 'manual' })).headers.get('location');
  const ask = async () => (await fetch(`${signpost.url}/tls/ask?domain=menu.example`)).status;
  await expect.poll(ask, EVENTUALLY).toBe(200);
  // What happened after the backup: the gateway has seen it, and Postgres will have forgotten it.
  const { rows: backup } = await pool.query('select * from domains');
  for (const each of ['two', 'three'])
    await api('PATCH', `/qr-codes/${code.id}`, { target_url: `https://${each}.example/` });
  await domains.removeDomain({ id });
  await expect.poll(ask, EVENTUALLY).toBe(404);
  expect(await target()).toBe('https://three.example/');

  // The second time the same backup is put back once more.
  for (const round of ['first', 'second']) {
    await pool.query(`update codes set target_url = 'https://one.example/', version = 1`);
    await pool.query('delete from domains');
    await pool.query(`insert into domains select * from jsonb_populate_recordset(null::domains, $1)`, [
      JSON.stringify(backup),
    ]);
    await pool.query(`select setval('domain_versions', 1)`);
    dns.set('menu.example', 'CNAME', 'sign.example');
    const restored = promisify(execFile)(process.execPath, ['src/restored.ts'], {
      env: { ...process.env, DATABASE_URL: signpost.databaseUrl },
    });
    expect(await restored).toEqual({ stdout: 'Republished: codes 1, domains 2.\n', stderr: '' });

    await expect.poll(target, EVENTUALLY).toBe('https://one.example/');
    await expect.poll(ask, EVENTUALLY).toBe(200);
    await api('PATCH', `/qr-codes/${code.id}`, { target_url: `https://${round}.example/` });
    await expect.poll(target, EVENTUALLY).toBe(`https://${round}.example/`);
    dns.set('menu.example', 'CNAME', 'elsewhere.example');
    await domains.verifyDomain({ id });
    await expect.poll(ask, EVENTUALLY).toBe(404);
  }
});

test('every code is published, however many there are', async () => {
  const { url } = await freshDatabase();
  const pool = new pg.Pool({ connectionString: url });
  onTestFinished(() => pool.end());
  await pool.query(
    `insert into codes (id, account_id, type, short_code, target_url)
     select gen_random_uuid(), $1, 'dynamic', 'x' || nth, 'https://example.com/' from generate_series(1, 2500) nth`,
    [await insertAccount(pool)],
  );
  await promisify(execFile)(process.execPath, ['src/restored.ts'], { env: { ...process.env, DATABASE_URL: url } });
  const { rows } = await pool.query(
    'select count(*)::integer as records, count(distinct key)::integer as keys from outbox',
  );
  expect(rows).toEqual([{ records: 2_500, keys: 2_500 }]);
});

test('a gateway that was stopped meanwhile gets all routes too, although it has read as many records of the log before', async () => {
  const signpost = await startSignpost({ env: { ROLES: 'rpc,relay' } });
  onTestFinished(signpost.stop);
  const [core, gateway] = [signpost.cores[0], signpost.gateways[0]];
  const pool = new pg.Pool({ connectionString: signpost.databaseUrl });
  onTestFinished(() => pool.end());
  const { apiKey } = await signpost.createAccount();
  const send = async (method: string, path: string, target: string) => {
    const [headers, body] = [{ authorization: `Bearer ${apiKey}` }, JSON.stringify({ target_url: target })];
    const answer = await fetch(`${signpost.url}/api/v1/qr-codes${path}`, { method, headers, body });
    return ((await answer.json()) as { data: { id: string; short_code: string } }).data;
  };
  const published = async () => (await pool.query('select from outbox_waiting limit 1')).rowCount === 0;
  const taken = async () => {
    const ready = (await (await fetch(`${signpost.url}/readyz`)).json()) as { routes: { taken: number } };
    return ready.routes.taken;
  };
  const target = async (shortCode: string) =>
    (await fetch(`${signpost.url}/r/${shortCode}`, { redirect: 'manual' })).headers.get('location');
  const codes = await Promise.all(Array.from({ length: 20 }, () => send('POST', '', 'https://one.example/')));
  await expect.poll(published, EVENTUALLY).toBe(true);
  const { rows: backup } = await pool.query(`select * from log_partitions where topic = 'signpost.routes.v1'`);
  // The second time the same backup is put back once more.
  for (const round of ['first', 'second']) {
    await Promise.all(codes.map(({ id }) => send('PATCH', `/${id}`, `https://${round}.example/`)));
    await expect.poll(taken, EVENTUALLY).toBe(40);
    await gateway?.kill('SIGTERM');
    await core?.kill('SIGTERM');

    for (const { partition, next, clean } of backup) {
      await pool.query(
        `update log_partitions set next = $2, clean = $3 where topic = 'signpost.routes.v1' and partition = $1`,
        [partition, next, clean],
      );
      await pool.query(
        `delete from log_records where topic = 'signpost.routes.v1' and partition = $1 and "offset" >= $2`,
        [partition, next],
      );
    }
    await pool.query(`update codes set target_url = 'https://one.example/', version = 1`);
    await core?.restart();
    await promisify(execFile)(process.execPath, ['src/restored.ts'], {
      env: { ...process.env, DATABASE_URL: signpost.databaseUrl },
    });
    await expect.poll(published, EVENTUALLY).toBe(true);
    await gateway?.restart();
    for (const { short_code } of codes)
      await expect.poll(() => target(short_code), EVENTUALLY).toBe('https://one.example/');
  }
});
