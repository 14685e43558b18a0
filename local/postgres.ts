import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { GATEWAY_ROLE } from '../src/db/gateway-role.ts';
import { freePort, isFree, LOOPBACK } from './free-port.ts';
import { keptSecret } from './kept-secret.ts';
import { type Ended, findPostgres, type PostgresPrograms } from './postgres-programs.ts';
import { addressOf, createRoles, OWNER, SUPERUSER } from './postgres-roles.ts';
import { replaceFile } from './replace-file.ts';

export interface PostgresOptions {
  /** Where everything is kept; made when it is missing. */
  readonly folder: string;
  /** Settings of `postgresql.conf` over the ones below. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A Postgres of our own, listening on the loopback interface only. */
export interface LocalPostgres {
  /** The database `signpost` as its owner. */
  readonly url: string;
  /** The same database as a gateway sees it. */
  readonly gatewayUrl: string;
  /** Ends it with all connections; resolves when nothing is left running. */
  stop(): Promise<void>;
}

const SETTINGS = {
  listen_addresses: LOOPBACK,
  // A socket's path may be too long for the system, and nobody needs it.
  unix_socket_directories: '',
  max_connections: '100',
  shared_buffers: '128MB',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Statements can hold values that are nobody's business.
  log_min_error_statement: 'panic',
};

/** The recovery after a crash and the last checkpoint take as long as the disk needs: here up to ten minutes. */
const PATIENTLY = ['--wait', '--timeout=600', '--silent'];

/** How often a start is tried when another process takes the free port first. */
const ATTEMPTS = 3;

/**
 * Starts the Postgres that npm installed. The first start initialises `folder`; later ones find everything there, and
 * one that was left running by a start that crashed is taken over as it is.
 */
export async function startPostgres({ folder, settings = {} }: PostgresOptions): Promise<LocalPostgres> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const programs = await findPostgres(folder);
  const data = join(folder, 'data');
  const passwordFile = join(folder, 'password');
  const secret = await keptSecret(passwordFile);
  await programs.adopt(passwordFile);
  const config = { ...SETTINGS, ...settings };
  if ((await rememberedPort(data)) === undefined) await initialise(programs, data, passwordFile, config);
  const port = (await runningPort(programs, data)) ?? (await start(programs, folder, config));
  const server = { port, secret };
  await createRoles(server);
  return {
    url: addressOf(server, OWNER, OWNER),
    gatewayUrl: addressOf(server, GATEWAY_ROLE, OWNER),
    stop: () => stop(programs, data),
  };
}

/** Makes the data beside its final place: a start that dies here leaves nothing half-made behind. */
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

/** Where a Postgres listens that still runs on this data. */
async function runningPort(programs: PostgresPrograms, data: string): Promise<number | undefined> {
  const status = await programs.run('pg_ctl', ['status', `--pgdata=${data}`]);
  return status.code === 0 ? await rememberedPort(data) : undefined;
}

async function start(
  programs: PostgresPrograms,
  folder: string,
  config: Readonly<Record<string, string>>,
): Promise<number> {
  const data = join(folder, 'data');
  for (let attempt = 1; ; attempt++) {
    const remembered = await rememberedPort(data);
    const port = remembered !== undefined && (await isFree(remembered)) ? remembered : await freePort();
    await configure(programs, data, { ...config, port: String(port) });
    const args = ['start', ...PATIENTLY, `--pgdata=${data}`, `--log=${join(folder, 'postgres.log')}`];
    const ended = await programs.run('pg_ctl', args);
    if (ended.code === 0) return port;
    const isLast = attempt === ATTEMPTS || (await isFree(port));
    if (isLast) expectSuccess(ended, `be started; ${join(folder, 'postgres.log')} has the reason`);
  }
}

async function stop(programs: PostgresPrograms, data: string): Promise<void> {
  const ended = await programs.run('pg_ctl', ['stop', '--mode=fast', ...PATIENTLY, `--pgdata=${data}`]);
  if (ended.code === 0) return;
  const status = await programs.run('pg_ctl', ['status', `--pgdata=${data}`]);
  if (status.code === 0) expectSuccess(ended, 'be stopped');
}

/** Writes all of `postgresql.conf`; what it leaves out has the server's own default. */
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

/** The port of the last start, or undefined where there is no data yet. */
async function rememberedPort(data: string): Promise<number | undefined> {
  try {
    const config = await readFile(join(data, 'postgresql.conf'), 'utf8');
    return Number(/^port = '(\d+)'$/m.exec(config)?.[1]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function expectSuccess({ code, output }: Ended, what: string): void {
  if (code !== 0) throw new OperatorError(`Postgres could not ${what}: ${output.trim().replaceAll(/\s*\n\s*/g, ' ')}`);
}
