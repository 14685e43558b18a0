import { execFile } from 'node:child_process';
import { chmod, chown, copyFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { expect } from 'vitest';
import { LOOPBACK } from '../../local/free-port.ts';
import { type LocalPostgres, startPostgres } from '../../local/postgres.ts';
import { addressOf, SUPERUSER } from '../../local/postgres-roles.ts';
import { isThere } from '../faults/visitors.ts';
import { afterFile } from './after-file.ts';
import { type CertificateAuthority, newAuthority } from './certificates.ts';

/** A primary with a synchronous standby, both of which accept TLS. */
export interface PostgresPair {
  /** `host:port` of the primary and of the standby. */
  readonly hosts: readonly [string, string];
  /** The CA of their certificates, which are valid for 127.0.0.1 and `localhost`. */
  readonly authority: CertificateAuthority;
  /** The database `signpost` at these hosts over verified TLS, for its owner or for gateways. */
  url(hosts: string, parameters?: Readonly<Record<string, string>>, role?: 'owner' | 'gateway'): string;
  /** Ends replication: the standby misses what is committed from now on. */
  detachStandby(): Promise<void>;
  /** Kills all processes of the primary at once. */
  killPrimary(): Promise<void>;
  /** Makes the standby the primary; resolves once it accepts writes. */
  promote(): Promise<void>;
}

/** Starts both on free ports; they are stopped after the calling file's tests. */
export async function startPostgresPair(): Promise<PostgresPair> {
  const parent = await mkdtemp(join(tmpdir(), 'signpost-pair-'));
  afterFile(() => rm(parent, { recursive: true, force: true }));
  // Postgres's own user has to reach its folders.
  await chmod(parent, 0o755);
  const authority = await newAuthority();
  const [first, second] = [join(parent, 'primary'), join(parent, 'standby')];
  await (await startPostgres({ folder: first })).stop();
  const { uid, gid } = await stat(join(first, 'data'));
  const own = async (path: string) => {
    await chmod(path, 0o600);
    await chown(path, uid, gid);
  };
  const { certFile, keyFile } = await authority.issue('postgres');
  for (const [from, name] of [
    [certFile, 'server.crt'],
    [keyFile, 'server.key'],
  ] as const) {
    await copyFile(from, join(first, 'data', name));
    await own(join(first, 'data', name));
  }
  await promisify(execFile)('cp', ['--archive', first, second]);
  await writeFile(join(second, 'data', 'standby.signal'), '');
  await own(join(second, 'data', 'standby.signal'));

  const start = async (folder: string, settings: Readonly<Record<string, string>>): Promise<LocalPostgres> => {
    const postgres = await startPostgres({
      folder,
      settings: { ssl: 'on', listen_addresses: `${LOOPBACK},127.0.0.2`, ...settings },
    });
    afterFile(() => postgres.stop());
    return postgres;
  };
  const primary = await start(first, { synchronous_standby_names: '*' });
  const secret = (await readFile(join(first, 'password'), 'utf8')).trim();
  const portOf = ({ url }: LocalPostgres) => Number(new URL(url).port);
  const conninfo = `host=${LOOPBACK} port=${portOf(primary)} user=${SUPERUSER} password=${secret}`;
  const standby = await start(second, { primary_conninfo: conninfo });
  const hosts = [primary, standby].map((each) => `${LOOPBACK}:${portOf(each)}`) as [string, string];

  const asSuperuser = async (port: number, statement: string): Promise<pg.QueryResult> => {
    const client = new pg.Client(addressOf({ port, secret }, SUPERUSER, 'postgres'));
    await client.connect();
    try {
      return await client.query(statement);
    } finally {
      await client.end();
    }
  };
  const streaming = `select from pg_stat_replication where sync_state = 'sync'`;
  while ((await asSuperuser(portOf(primary), streaming)).rowCount === 0);

  return {
    hosts,
    authority,
    url(at, parameters = {}, role = 'owner') {
      const url = new URL(role === 'owner' ? primary.url : primary.gatewayUrl);
      const tls = { sslmode: 'verify-full', sslrootcert: authority.certFile };
      url.search = new URLSearchParams({ ...tls, ...parameters }).toString();
      return url.href.replace(url.host, at);
    },
    async detachStandby() {
      for (const [server, setting] of [
        [primary, 'synchronous_standby_names'],
        [standby, 'primary_conninfo'],
      ] as const) {
        await asSuperuser(portOf(server), `alter system set ${setting} = ''`);
        await asSuperuser(portOf(server), 'select pg_reload_conf()');
      }
      const attached = async () => (await asSuperuser(portOf(primary), 'select from pg_stat_replication')).rowCount;
      await expect.poll(attached).toBe(0);
    },
    killPrimary: () => killPostgres(first),
    async promote() {
      await asSuperuser(portOf(standby), 'select pg_promote(true, 60)');
    },
  };
}

/** Kills all processes of the Postgres in this folder at once. */
export async function killPostgres(folder: string): Promise<void> {
  const [line] = (await readFile(join(folder, 'data', 'postmaster.pid'), 'utf8')).split('\n');
  const postmaster = Number(line);
  const { stdout } = await promisify(execFile)('pgrep', ['-P', String(postmaster)]);
  const all = [postmaster, ...stdout.split('\n').filter(Boolean).map(Number)];
  for (const pid of all) {
    // A process may have exited meanwhile.
    if (isThere(pid)) process.kill(pid, 'SIGKILL');
  }
  await expect.poll(() => all.filter(isThere), { timeout: 60_000 }).toEqual([]);
}
