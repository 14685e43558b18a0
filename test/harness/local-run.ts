import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { freePort } from '../../local/free-port.ts';

/** What a run that has ended left behind. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A run of `npm start`. */
export interface LocalRun {
  readonly pid: number;
  /** Resolves with what was printed once everything runs; rejects when it ends before. */
  readonly ready: Promise<string>;
  readonly ended: Promise<Ended>;
  /** Sends a signal to the whole process group, as a terminal does. */
  signal(name: NodeJS.Signals): void;
  /** The process id of one that was started. */
  child(name: ChildName): Promise<number>;
}

/** Their programs, and which roles they play. */
const PROGRAMS = {
  core: ['src/main.ts', 'ROLES=rpc'],
  worker: ['src/main.ts', 'ROLES=relay,recorder,worker'],
  gateway: ['gateway/main.ts', undefined],
} as const;

type ChildName = keyof typeof PROGRAMS;

/** A folder and ports that no other run has; the folder is removed after the test. */
export async function ownPlace(): Promise<Record<'DATA_DIR' | 'PORT' | 'CORE_PORT' | 'GRPC_PORT', string>> {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-start-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const [port, corePort, grpcPort] = await Promise.all([freePort(), freePort(), freePort()]);
  return {
    DATA_DIR: join(folder, 'data'),
    PORT: String(port),
    CORE_PORT: String(corePort),
    GRPC_PORT: String(grpcPort),
  };
}

/** Starts Signpost as a person does, in a process group of its own; it is stopped after the test if it still runs. */
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
  const ready = Promise.withResolvers<string>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    if (stdout.includes('/analytics')) ready.resolve(stdout);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
  ended.then(({ code }) => ready.reject(new Error(`npm start ended with code ${code}: ${stderr}`)));
  // Some tests want it to end without ever being ready.
  ready.promise.catch(() => undefined);
  const signal = (name: NodeJS.Signals) => void process.kill(-pid, name);
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) signal('SIGTERM');
    await ended;
  });
  return {
    pid,
    ready: ready.promise,
    ended,
    signal,
    async child(name) {
      const [program, roles] = PROGRAMS[name];
      const { stdout: found } = await promisify(execFile)('pgrep', ['-P', String(pid), '-f', program]);
      for (const one of found.trim().split('\n')) {
        const env = (await readFile(`/proc/${one}/environ`, 'utf8')).split('\0');
        if (env.find((variable) => variable.startsWith('ROLES=')) === roles) return Number(one);
      }
      throw new Error(`no ${name} runs`);
    },
  };
}
