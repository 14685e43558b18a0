import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort, LOOPBACK } from '../../local/free-port.ts';

const run = promisify(execFile);

/** A process under test: a gateway worker, or a server that it is compared with. */
export interface Subject {
  readonly port: number;
  readonly pid: number;
  /** The proxy that requests take, if they take one. It shares the other CPU cores with the load. */
  readonly proxyUrl?: string;
  stop(): Promise<void>;
}

/** The memory of a process, in MiB. */
export interface Memory {
  readonly resident: number;
  /** Anonymous memory. */
  readonly own: number;
  /** Pages of files: the route table and programs. The system has them only once for all processes. */
  readonly files: number;
  /** Resident memory, with shared pages divided among the processes that share them. */
  readonly share: number;
}

/** Whether subjects have the first CPU core for themselves. */
export const pinned = availableParallelism() > 1 && isInstalled('taskset');

/** Moves this process, and all that it starts from now on, to the other CPU cores. */
export function reserveCore(): void {
  if (pinned) pin(process.pid, `1-${availableParallelism() - 1}`);
}

/**
 * The command prefix that gives the load real-time priority on the CPU cores that it shares with everything but the
 * subject, so that it is fast enough to measure. Empty if that is not permitted.
 */
export const first = isPermitted('chrt', '-f', '1', 'true') ? ['chrt', '-f', '1'] : [];

/**
 * Starts a gateway with one worker. `startMs`: how long it took to become ready, in ms. `project`: the folder of
 * another version.
 */
export async function startGateway(
  folder: string,
  env: Readonly<Record<string, string | undefined>>,
  project = join(import.meta.dirname, '../..'),
): Promise<Subject & { readonly startMs: number }> {
  const port = await freePort();
  const start = performance.now();
  const { startChild } = (await import(join(project, 'local/child.ts'))) as typeof import('../../local/child.ts');
  const child = await startChild({
    name: 'gateway',
    program: 'gateway/main.ts',
    log: `${folder}.log`,
    env: {
      PATH: process.env.PATH,
      PORT: String(port),
      DATA_DIR: folder,
      GATEWAY_WORKERS: '1',
      LOG_LEVEL: 'warn',
      ...env,
    },
  });
  const startMs = Math.round(performance.now() - start);
  const pid = await childOf(child.pid, 'gateway/worker.ts');
  pin(pid, '0');
  return { port, pid, startMs, stop: () => child.stop() };
}

/** Starts `node:http` with a constant redirect. */
export async function startConstant(): Promise<Subject> {
  const port = await freePort();
  const child = spawn(process.execPath, [join(import.meta.dirname, 'constant.ts'), String(port)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  await once(child, 'message');
  const { pid = 0 } = child;
  pin(pid, '0');
  return { port, pid, stop: async () => void child.kill() };
}

/** Starts nginx with a constant redirect; undefined if it is not installed. */
export async function startNginx(folder: string): Promise<Subject | undefined> {
  if (!isInstalled('nginx')) return undefined;
  const port = await freePort();
  const config = join(folder, 'nginx.conf');
  await writeFile(
    config,
    `daemon off; worker_processes 1; pid ${join(folder, 'nginx.pid')}; error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000000;
  server {
    listen ${LOOPBACK}:${port};
    location / { add_header cache-control no-store always; return 302 https://example.com/menu?table=4; }
  }
}`,
  );
  const child = spawn('nginx', ['-p', folder, '-c', config], { stdio: ['ignore', 'inherit', 'inherit'] });
  await sleep(500);
  const pid = await childOf(child.pid ?? 0, 'worker process');
  pin(pid, '0');
  return { port, pid, stop: async () => void child.kill() };
}

/** User and system CPU time of a process so far, in µs. */
export async function cpuOf({ pid }: Pick<Subject, 'pid'>): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // After the name, which may contain anything; in hundredths of a second.
  const [user, system] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14).map(Number);
  return ((user ?? 0) + (system ?? 0)) * 10_000;
}

export async function memoryOf({ pid }: Subject): Promise<Memory> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const shares = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  const mib = (name: string) =>
    Math.round(Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status + shares)?.[1]) / 1_024);
  return { resident: mib('VmRSS'), own: mib('RssAnon'), files: mib('RssFile'), share: mib('Pss') };
}

export function isInstalled(program: string): boolean {
  return isPermitted('sh', '-c', `command -v ${program}`);
}

function isPermitted(program: string, ...more: string[]): boolean {
  try {
    execFileSync(program, more, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function childOf(parent: number, command: string): Promise<number> {
  const { stdout } = await run('pgrep', ['-P', String(parent), '-f', command]);
  return Number(stdout);
}

function pin(pid: number, cores: string): void {
  if (pinned) execFileSync('taskset', ['-acp', cores, String(pid)], { stdio: 'ignore' });
}
