import { mkdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { pause } from '../common/runtime/pause.ts';
import { GATEWAY_ROLE } from '../src/db/gateway-role.ts';
import { freePort, isFree, LOOPBACK } from './free-port.ts';
import { tail } from './log-tail.ts';
import { findPostgres, type PostgresPrograms, type ProgramResult } from './postgres-programs.ts';
import { addressOf, createRoles, OWNER, SUPERUSER } from './postgres-roles.ts';
import { replaceFile } from './replace-file.ts';
import { readOrCreateSecret } from './secret-file.ts';

export interface PostgresOptions {
  /** The folder for data and logs; created if it is missing. */
  readonly folder: string;
  /** Settings of `postgresql.conf` that override the ones below. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A local Postgres, listening on the loopback interface only. */
export interface LocalPostgres {
  /** The URL of the database `signpost` for its owner. */
  readonly url: string;
  /** The URL of the same database for gateways. */
  readonly gatewayUrl: string;
  /**
   * Resolves when Postgres has ended without `stop`, with a message; never for a Postgres elsewhere. It looks every
   * second, from the call on.
   */
  ended(): Promise<string>;
  /** Stops it and all connections; resolves when no process is left running. */
  stop(): Promise<void>;
}

const DEFAULT_SETTINGS = {
  listen_addresses: LOOPBACK,
  // A socket's path may be too long for the system, and it is not needed.
  unix_socket_directories: '',
  max_connections: '100',
  shared_buffers: '128MB',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Statements may contain personal data.
  log_min_error_statement: 'panic',
};

/** Crash recovery and the shutdown checkpoint may take as long as the disk needs: here up to ten minutes. */
const WAIT_OPTIONS = ['--wait', '--timeout=600', '--silent'];

/** How often to look whether Postgres still runs. */
const WATCH_MS = 1_000;

/** The number of attempts to start if another process takes the free port first. */
const ATTEMPTS = 3;

/**
 * Starts the Postgres that npm installed. The first start initialises `folder`. A Postgres left running by a crashed
 * start is reused.
 */
export async function startPostgres({ folder, settings = {} }: PostgresOptions): Promise<LocalPostgres> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const data = join(folder, 'data');
  const programs = await findPostgres(folder, data);
  const passwordFile = join(folder, 'password');
  const secret = await readOrCreateSecret(passwordFile);
  await programs.adopt(passwordFile);
  const config = { ...DEFAULT_SETTINGS, ...settings };
  if ((await configuredPort(data)) === undefined) await initialise(programs, data, passwordFile, config);
  const log = join(folder, 'postgres.log');
  const before = await stat(log).catch(() => undefined);
  const port = (await runningPort(programs, data)) ?? (await start(programs, folder, config));
  const server = { port, secret };
  await createRoles(server);
  const stopping = new AbortController();
  return {
    url: addressOf(server, OWNER, OWNER),
    gatewayUrl: addressOf(server, GATEWAY_ROLE, OWNER),
    async ended() {
      // pg_ctl is the parent of the process. Whether its port is free needs no connection, nor its process id, which
      // another process may have by now.
      while (!stopping.signal.aborted && !(await isFree(port))) await pause(WATCH_MS, stopping.signal);
      if (stopping.signal.aborted) return new Promise(() => undefined);
      return `Postgres ended. ${await tail(log, before?.size ?? 0)}`;
    },
    stop() {
      stopping.abort();
      return stop(programs, data);
    },
  };
}

/** Initialises the data in a temporary folder and renames it, so that a start that dies here leaves no partial data. */
async function initialise(
  programs: PostgresPrograms,
  data: string,
  passwordFile: string,
  config: Readonly<Record<string, string>>,
): Promise<void> {
  const draft = `${data}.new`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: 0o700 });
  await programs.adopt(draft);
  const options = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const durability = config.fsync === 'off' ? ['--no-sync'] : [];
  const login = [`--username=${SUPERUSER}`, '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  expectSuccess(await programs.run('initdb', [`--pgdata=${draft}`, ...options, ...durability, ...login]), 'be set up');
  await configure(programs, draft, { ...config, port: String(await freePort()) });
  await rename(draft, data);
}

/** The port of a Postgres that is still running on this data. */
async function runningPort(programs: PostgresPrograms, data: string): Promise<number | undefined> {
  const status = await programs.run('pg_ctl', ['status', `--pgdata=${data}`]);
  if (status.code !== 0) return undefined;
  const port = await configuredPort(data);
  if (port === undefined || !(await isFree(port))) return port;
  const file = join(data, 'postmaster.pid');
  const [pid] = (await readFile(file, 'utf8')).split('\n');
  throw new OperatorError(
    `Postgres can't be started: ${file} names process ${pid}, which does not listen on port ${port}. If it is another program, delete the file; if it is a Postgres that ends, wait for that.`,
  );
}

async function start(
  programs: PostgresPrograms,
  folder: string,
  config: Readonly<Record<string, string>>,
): Promise<number> {
  const data = join(folder, 'data');
  for (let attempt = 1; ; attempt++) {
    const configured = await configuredPort(data);
    const port = configured !== undefined && (await isFree(configured)) ? configured : await freePort();
    await configure(programs, data, { ...config, port: String(port) });
    const args = ['start', ...WAIT_OPTIONS, `--pgdata=${data}`, `--log=${join(folder, 'postgres.log')}`];
    const ended = await programs.run('pg_ctl', args);
    if (ended.code === 0) return port;
    const isLast = attempt === ATTEMPTS || (await isFree(port));
    if (isLast) expectSuccess(ended, `be started; ${join(folder, 'postgres.log')} has the reason`);
  }
}

async function stop(programs: PostgresPrograms, data: string): Promise<void> {
  const ended = await programs.run('pg_ctl', ['stop', '--mode=fast', ...WAIT_OPTIONS, `--pgdata=${data}`]);
  if (ended.code === 0) return;
  const status = await programs.run('pg_ctl', ['status', `--pgdata=${data}`]);
  if (status.code === 0) expectSuccess(ended, 'be stopped');
}

/** Writes the whole `postgresql.conf`; other settings have the server's defaults. */
async function configure(
  programs: PostgresPrograms,
  data: string,
  config: Readonly<Record<string, string>>,
): Promise<void> {
  const lines = Object.entries(config).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`);
  const path = join(data, 'postgresql.conf');
  await replaceFile(path, lines.join(''));
  await programs.adopt(path);
}

/** The port of the last start; undefined if there is no data yet. */
async function configuredPort(data: string): Promise<number | undefined> {
  try {
    const config = await readFile(join(data, 'postgresql.conf'), 'utf8');
    return Number(/^port = '(\d+)'$/m.exec(config)?.[1]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function expectSuccess({ code, output }: ProgramResult, what: string): void {
  if (code !== 0) throw new OperatorError(`Postgres could not ${what}: ${output.trim().replaceAll(/\s*\n\s*/g, ' ')}`);
}
