import type { Pool } from 'pg';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { readOnlyPool } from '../../gateway/redirect/read-only-pool.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';
import { openJobPool } from '../../src/jobs/worker.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { connectionOptions } from './connection-options.ts';
import { transactionWithin } from './sql.ts';

const logger = pino({ level: 'silent' });

async function openCorePool(url: string): Promise<Pool> {
  const { pool, close } = await openDatabase(url, 2, entities);
  onTestFinished(() => close());
  return pool;
}

test.each([
  ['a core', openCorePool],
  ['background jobs', async (url: string) => openJobPool(url, logger)],
  ['a gateway', async (url: string) => readOnlyPool(url, 1, logger)],
])(
  'Postgres soon ends sessions of %s whose machine has vanished, or whose process is suspended',
  async (name, open) => {
    const pool = await open((await freshDatabase()).url);
    if (name !== 'a core') onTestFinished(() => pool.end());
    const { rows } = await pool.query<{ name: string; seconds: number }>(
      `select name, case unit when 'ms' then setting::int / 1000 else setting::int end as seconds from pg_settings
     where name in ('tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_user_timeout', 'idle_in_transaction_session_timeout')`,
    );
    expect(Object.fromEntries(rows.map((row) => [row.name, row.seconds]))).toEqual({
      tcp_keepalives_idle: 10,
      tcp_keepalives_interval: 5,
      tcp_user_timeout: 20,
      idle_in_transaction_session_timeout: 20,
    });
  },
);

test.each(['', 'sslmode=verify-full&'])(
  'sslrootcert=system verifies the server by the CAs that Node trusts (%s)',
  (mode) => {
    const { ssl } = connectionOptions(`postgres://db.internal/signpost?${mode}sslrootcert=system`);
    expect(ssl).toEqual({ host: 'db.internal' });
  },
);

test('Postgres ends a transaction whose time is over, also if its process can’t', async () => {
  const pool = await openCorePool((await freshDatabase()).url);
  // As in a process that is suspended, no timer fires.
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const ended = transactionWithin(pool, 100, (tx) => tx.query('select pg_sleep(60)'));
  await expect(ended).rejects.toThrow('terminating connection due to transaction timeout');
});
