import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { connectionOptions } from '../../common/postgres/connection-options.ts';
import { postgresProblem } from '../../common/postgres/postgres-problem.ts';
import { isUnavailable } from '../../common/postgres/unavailable.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { EventsService } from '../../proto/gen/signpost/events/v1/events_pb.ts';
import { internal } from '../contract/internal.ts';
import { newAuthority } from '../harness/certificates.ts';
import { type PostgresPair, startPostgresPair } from '../harness/postgres-pair.ts';
import { startSignpost } from '../harness/processes.ts';
import { api, expectRecorded, startScans } from './power-cut-load.ts';
import { isThere } from './visitors.ts';

const EVENTUALLY = { timeout: 60_000, interval: 200 };
/** Together they stay below the rate that an account may have. */
const CREATORS = 2;
const PAUSE_MS = 150;

let pair: PostgresPair;
let both: string;
beforeAll(async () => {
  pair = await startPostgresPair();
  both = pair.hosts.join();
});

/** The server that a client with this URL is connected to, as `host:port`. */
async function serverOf(url: string): Promise<string> {
  const options = connectionOptions(url);
  const client = new options.Client({ ...options, connectionTimeoutMillis: 5_000 });
  await client.connect();
  try {
    const { rows } = await client.query<{ port: number; ssl: boolean }>(
      'select inet_server_port() as port, ssl from pg_stat_ssl where pid = pg_backend_pid()',
    );
    expect(rows[0]?.ssl).toBe(true);
    return `127.0.0.1:${rows[0]?.port}`;
  } finally {
    await client.end();
  }
}

async function errorOf(url: string): Promise<unknown> {
  return serverOf(url).then(
    (server) => `connected to ${server}`,
    (error: unknown) => error,
  );
}

describe('a connection by DATABASE_URL', () => {
  test.each([
    ['read-write', 0],
    ['primary', 0],
    ['read-only', 1],
    ['standby', 1],
  ])('with target_session_attrs=%s is to that server, in whichever order they are named', async (wanted, server) => {
    const parameters = { target_session_attrs: wanted };
    expect(await serverOf(pair.url(both, parameters))).toBe(pair.hosts[server]);
    expect(await serverOf(pair.url(pair.hosts.toReversed().join(), parameters))).toBe(pair.hosts[server]);
  });

  test('with target_session_attrs=any is to any of them', async () => {
    expect(pair.hosts).toContain(await serverOf(pair.url(both, { target_session_attrs: 'any' })));
    expect(await serverOf(pair.url(`127.0.0.1:1,${pair.hosts[1]}`, { target_session_attrs: 'any' }))).toBe(
      pair.hosts[1],
    );
  });

  test.each([
    ['several', () => `127.0.0.1:1,${pair.hosts[1]}`],
    ['one', () => pair.hosts[1]],
  ])('fails as unavailable while none of %s hosts is in the wanted state', async (_, hosts) => {
    const error = await errorOf(pair.url(hosts(), { target_session_attrs: 'read-write' }));
    expect(error).toSatisfy(isUnavailable);
    expect(postgresProblem(error)).toMatch(
      new RegExp(`^Postgres is unavailable: .*${pair.hosts[1]} is not in the state target_session_attrs=read-write$`),
    );
  });

  test.each([
    ['one host', () => pair.hosts[0], {}],
    ['several hosts', () => both, { target_session_attrs: 'read-write' }],
  ])('to %s is refused with a sentence about the certificate, its name, or the login', async (_, hosts, parameters) => {
    const sentenceOf = async (url: string) => postgresProblem(await errorOf(url));
    const other = await newAuthority();
    expect(await sentenceOf(pair.url(hosts(), { ...parameters, sslrootcert: other.certFile }))).toMatch(
      /^The certificate of Postgres is not accepted: .+\. sslrootcert in DATABASE_URL must name its CA\.$/,
    );
    expect(await sentenceOf(pair.url(hosts(), { ...parameters, sslrootcert: 'system' }))).toMatch(
      /^The certificate of Postgres is not accepted: /,
    );
    // The certificate names 127.0.0.1 and localhost.
    const renamed = hosts().replaceAll('127.0.0.1', '127.0.0.2');
    expect(await sentenceOf(pair.url(renamed, parameters))).toMatch(
      /^The certificate of Postgres is not accepted: Hostname\/IP does not match certificate's altnames: IP: 127.0.0.2 /,
    );
    const wrong = pair.url(hosts(), parameters).replace(/:[^:@]+@/, ':wrong@');
    expect(await sentenceOf(wrong)).toBe(
      'Postgres refuses the login in DATABASE_URL: password authentication failed for user "signpost"',
    );
  });
});

test('the command that migrates ends with that sentence, without a stack', async () => {
  const migrate = (url: string, env = {}) =>
    promisify(execFile)(process.execPath, ['src/migrate.ts'], {
      env: { PATH: process.env.PATH, DATABASE_URL: url, ...env },
    });
  const url = pair.url(both, { target_session_attrs: 'read-write' });
  await expect(migrate(url.replace(/:[^:@]+@/, ':wrong@'))).rejects.toMatchObject({
    stderr: 'Postgres refuses the login in DATABASE_URL: password authentication failed for user "signpost"\n',
  });
  await expect(migrate(pair.url(both))).rejects.toMatchObject({
    stderr: 'DATABASE_URL names several hosts, so it needs target_session_attrs=read-write: the primary is used.\n',
  });
  expect((await migrate(url)).stdout).toMatch(/^The schema is up to date/);
  // As if the CA were public.
  const byPublicCa = pair.url(both, { target_session_attrs: 'read-write', sslrootcert: 'system' });
  const trusted = await migrate(byPublicCa, { NODE_EXTRA_CA_CERTS: pair.authority.certFile });
  expect(trusted.stdout).toMatch(/^The schema is up to date/);
});

/** Creates codes until it is stopped: those that were acknowledged, when, and the answers of all other calls. */
function startCreates(create: () => Promise<Response>) {
  const created: { id: string; at: number }[] = [];
  const failures: { status: number; retryAfter: string | null }[] = [];
  let isRunning = true;
  const all = Array.from({ length: CREATORS }, async () => {
    while (isRunning) {
      const answer = await create();
      if (answer.status === 201) {
        const { data } = (await answer.json()) as { data: CodeJson };
        created.push({ id: data.id, at: performance.now() });
      } else {
        failures.push({ status: answer.status, retryAfter: answer.headers.get('retry-after') });
      }
      await sleep(PAUSE_MS);
    }
  });
  const stop = async () => {
    isRunning = false;
    await Promise.all(all);
  };
  onTestFinished(stop);
  return { created, failures, stop };
}

test('a failover to the standby loses nothing that was acknowledged, and everything resumes by itself', async () => {
  const wanted = { target_session_attrs: 'read-write' };
  const url = pair.url(both, wanted);
  const signpost = await startSignpost({
    databaseUrl: url,
    gatewayDatabaseUrl: pair.url(both, wanted, 'gateway'),
    cores: 2,
    roles: ['rpc', 'relay,recorder,worker'],
  });
  const { apiKey } = await signpost.createAccount({ plan: Plan.ENTERPRISE });
  const create = () => api(signpost, apiKey, 'POST', '/qr-codes', { target_url: 'https://example.com/' });
  const { data: scanned } = (await (await create()).json()) as { data: CodeJson };
  const unencrypted = new pg.Client(connectionOptions(pair.url(pair.hosts[0])));
  // It loses its server with the others.
  unencrypted.on('error', () => {});
  await unencrypted.connect();
  onTestFinished(() => unencrypted.end());
  const connections = async () => {
    const { rows } = await unencrypted.query<{ ssl: boolean }>(
      `select ssl from pg_stat_ssl join pg_stat_activity using (pid) where datname = 'signpost'`,
    );
    return rows.map(({ ssl }) => ssl);
  };
  await expect.poll(async () => (await connections()).length, EVENTUALLY).toBeGreaterThan(8);
  expect(await connections()).not.toContain(false);

  const scans = startScans(`${signpost.url}/r/${scanned.short_code}`, 0, 4);
  const creates = startCreates(create);
  await expect.poll(() => creates.created.length, EVENTUALLY).toBeGreaterThan(50);
  const answeredBefore = scans.answered.size;
  await pair.killPrimary();
  const killed = performance.now();
  await expect.poll(() => creates.failures.length, EVENTUALLY).toBeGreaterThan(10);
  await pair.promote();
  const promoted = performance.now();
  const after = () => creates.created.filter(({ at }) => at > promoted);
  await expect.poll(() => after().length, EVENTUALLY).toBeGreaterThan(50);
  const seconds = (from: number) => ((Math.min(...after().map(({ at }) => at)) - from) / 1_000).toFixed(1);
  console.log(
    `The first code was created ${seconds(promoted)} s after the standby was promoted, ${seconds(killed)} s after the kill.`,
  );
  await creates.stop();
  await scans.stop();
  expect(scans.answered.size).toBeGreaterThan(answeredBefore);
  // As the contract says of a service that is unavailable for a moment.
  expect(creates.failures.filter(({ status, retryAfter }) => status !== 503 || !(Number(retryAfter) > 0))).toEqual([]);
  for (const core of signpost.cores) expect(isThere(core.pid), await core.log()).toBe(true);

  const standby = pair.url(pair.hosts[1]);
  const database = new pg.Pool(connectionOptions(standby) as pg.PoolConfig);
  onTestFinished(() => database.end());
  const waiting = async () => (await database.query('select from outbox_waiting limit 1')).rowCount;
  await expect.poll(waiting, EVENTUALLY).toBe(0);
  const { rows: kept } = await database.query<{ id: string }>('select id from codes');
  const ids = new Set(kept.map(({ id }) => id));
  expect(creates.created.filter(({ id }) => !ids.has(decodeId('qr', id) ?? ''))).toEqual([]);
  const audit = await internal(signpost, EventsService).auditEvents({});
  expect([audit.events?.missing, audit.routes?.missing].map(Number)).toEqual([0, 0]);
  await expectRecorded(standby, scanned, scans.answered);
}, 240_000);
