import { execFile, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { readOnlyPool } from '../../gateway/redirect/read-only-pool.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { startSignpost } from '../../test/harness/processes.ts';
import { expectOwnSessions } from './pooled-sessions.ts';

const run = promisify(execFile);
const EVENTUALLY = { interval: 50 };
const REFUSED = /^DATABASE_URL points to a pooler that lends sessions for one transaction at a time/;

const isInstalled = spawnSync('pgbouncer', ['--version']).status === 0;
if (process.env.CI && !isInstalled) throw new Error('pgbouncer is not installed');

/** Starts PgBouncer before a new database, and returns the database's address through it. */
async function startPgBouncer(poolMode: string, databaseUrl?: string): Promise<string> {
  const url = new URL(databaseUrl ?? (await freshDatabase()).url);
  const folder = mkdtempSync(join(tmpdir(), 'signpost-pgbouncer-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const port = await freePort();
  const [user, password] = [url.username, url.password].map(decodeURIComponent);
  writeFileSync(join(folder, 'users'), `"${user}" "${password}"\n`);
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=${url.hostname} port=${url.port || 5432}
[pgbouncer]
listen_addr = ${LOOPBACK}
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${join(folder, 'users')}
pool_mode = ${poolMode}
ignore_startup_parameters = extra_float_digits
`,
  );
  for (const file of ['', 'users', 'pgbouncer.ini']) chmodSync(join(folder, file), 0o755);
  // It refuses to run as root.
  const asNobody = process.getuid?.() === 0 ? ['--user', 'nobody'] : [];
  const bouncer = spawn('pgbouncer', [...asNobody, join(folder, 'pgbouncer.ini')], { stdio: 'ignore' });
  onTestFinished(() => void bouncer.kill('SIGKILL'));
  url.host = `${LOOPBACK}:${port}`;
  const client = async () => {
    const connected = new pg.Client({ connectionString: url.href });
    await connected.connect();
    await connected.end();
    return true;
  };
  await expect.poll(() => client().catch(() => false), EVENTUALLY).toBe(true);
  return url.href;
}

async function check(url: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  try {
    await expectOwnSessions(pool);
  } finally {
    await pool.end();
  }
}

test('Postgres itself gives each connection a session', async () => {
  await check((await freshDatabase()).url);
});

test('both connections are returned to the pool, and the first also if there is no second', async () => {
  const { url } = await freshDatabase();
  for (const max of [2, 1]) {
    const pool = new pg.Pool({ connectionString: url, max, connectionTimeoutMillis: 1_000 });
    const checked = await Promise.allSettled([expectOwnSessions(pool)]);
    expect([checked[0].status, pool.idleCount]).toEqual([max === 2 ? 'fulfilled' : 'rejected', max]);
    await pool.end();
  }
});

test.skipIf(!isInstalled)(
  'PgBouncer does so with pool_mode=session, and cores and gateways work behind it',
  async () => {
    const { url } = await freshDatabase();
    const pooled = await startPgBouncer('session', url);
    await check(pooled);
    const lookUps = readOnlyPool(pooled, 1, pino({ level: 'silent' }));
    const { rows } = await lookUps.query(
      `select current_setting('statement_timeout') as timeout, current_setting('transaction_read_only') as read_only`,
    );
    expect(rows).toEqual([{ timeout: '1s', read_only: 'on' }]);
    await lookUps.end();
    const signpost = await startSignpost({
      databaseUrl: url,
      env: { DATABASE_URL: pooled },
      gatewayEnv: { DATABASE_URL: pooled },
    });
    const { apiKey } = await signpost.createAccount();
    const headers = { authorization: `Bearer ${apiKey}` };
    const body = JSON.stringify({ target_url: 'https://example.com/' });
    const created = await fetch(`${signpost.url}/api/v1/qr-codes`, { method: 'POST', headers, body });
    const { data } = (await created.json()) as { data: { id: string; short_code: string } };
    expect((await fetch(`${signpost.url}/r/${data.short_code}`, { redirect: 'manual' })).status).toBe(302);
    const counted = async () => {
      const response = await fetch(`${signpost.url}/api/v1/qr-codes/${data.id}`, { headers });
      return ((await response.json()) as { data: { scan_count: number } }).data.scan_count;
    };
    await expect.poll(counted, EVENTUALLY).toBe(1);
  },
);

test.skipIf(!isInstalled).each(['transaction', 'statement'])(
  'a core refuses to start behind PgBouncer with pool_mode=%s, and says why',
  async (poolMode) => {
    const url = await startPgBouncer(poolMode);
    await expect(check(url)).rejects.toThrow(REFUSED);
    const env = { PATH: process.env.PATH, DATABASE_URL: url, SECRET_KEY: Buffer.alloc(32).toString('base64') };
    await expect(run(process.execPath, ['src/main.ts'], { env })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(REFUSED),
    });
  },
);
