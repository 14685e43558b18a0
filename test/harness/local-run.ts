import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { freePort } from '../../local/free-port.ts';

/** Exit code and output of a run that has ended. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A run of `npm start`. */
export interface LocalRun {
  readonly pid: number;
  /** Resolves with the output once the API is ready; rejects if it ends before. */
  readonly ready: Promise<string>;
  /** Resolves with the output once that contains a text; rejects if it ends before. */
  prints(text: string): Promise<string>;
  readonly ended: Promise<Ended>;
  /** Sends a signal to the whole process group, as Ctrl-C in a terminal does. */
  signal(name: NodeJS.Signals): void;
  /** The process id of a child process. */
  child(name: ChildName): Promise<number>;
}

/** Program and roles of each child process. */
const PROGRAMS = {
  core: ['src/main.ts', 'ROLES=rpc'],
  worker: ['src/main.ts', 'ROLES=relay,recorder,worker'],
  gateway: ['gateway/main.ts', undefined],
  dashboard: ['dashboard/server/main.ts', undefined],
} as const;

type ChildName = keyof typeof PROGRAMS;

/** Variables of an isolated run. */
type Environment = Record<'DATA_DIR' | 'PORT' | 'CORE_PORT' | 'GRPC_PORT' | 'DASHBOARD_PORT' | 'SAMPLE', string>;

/**
 * Creates a folder and picks ports that no other run uses, without sample data; the folder is removed after the test,
 * or when `later` says.
 */
export async function isolatedEnvironment(
  later: (remove: () => Promise<void>) => void = onTestFinished,
): Promise<Environment> {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-start-'));
  later(() => rm(folder, { recursive: true, force: true }));
  const [port, corePort, grpcPort, dashboardPort] = await Promise.all(Array.from({ length: 4 }, freePort));
  return {
    DATA_DIR: join(folder, 'data'),
    PORT: String(port),
    CORE_PORT: String(corePort),
    GRPC_PORT: String(grpcPort),
    DASHBOARD_PORT: String(dashboardPort),
    SAMPLE: 'false',
  };
}

/** Starts Signpost as a user does, in its own process group; it is stopped after the test if it still runs. */
export function startLocally(env: Readonly<Record<string, string>>, command = ['node', 'local/start.ts']): LocalRun {
  const [program = '', ...args] = command;
  const { PATH, HOME } = process.env;
  const child = spawn(program, args, {
    detached: true,
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} could not be started.`);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
  const prints = async (text: string) => {
    // Not before something is waited for: nobody would handle the rejection.
    const failed = () =>
      ended.then(({ code }) => Promise.reject(new Error(`npm start ended with code ${code}: ${stderr}`)));
    while (!stdout.includes(text)) await Promise.race([once(child.stdout, 'data'), failed()]);
    return stdout;
  };
  const ready = prints('/analytics');
  // Some tests expect it to end before it is ready.
  ready.catch(() => undefined);
  const signal = (name: NodeJS.Signals) => void process.kill(-pid, name);
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) signal('SIGTERM');
    await ended;
  });
  return {
    pid,
    ready,
    prints,
    ended,
    signal,
    async child(name) {
      const [program, roles] = PROGRAMS[name];
      const { stdout: found } = await promisify(execFile)('pgrep', ['-P', String(pid), '-f', program]);
      for (const candidate of found.trim().split('\n')) {
        const env = (await readFile(`/proc/${candidate}/environ`, 'utf8')).split('\0');
        if (env.find((variable) => variable.startsWith('ROLES=')) === roles) return Number(candidate);
      }
      throw new Error(`no ${name} is running`);
    },
  };
}
