import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect } from 'vitest';
import { afterFile } from '../test/harness/after-file.ts';
import type { Signpost } from '../test/harness/processes.ts';
import type { CommandMessage, Outcome } from './command-process.fixture.ts';
import { EXIT_CODES } from './exit-codes.ts';

/** Runs commands of the command line. */
export interface CommandLine {
  /**
   * With variables of its own, a command gets a process of its own. Others take turns in one, or as many as run at a
   * time: to start and to load its modules takes a command ten times as long as what it does.
   */
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Outcome>;
  /** The value printed with `--json`, on one line; the command has to succeed without output on standard error. */
  json<Value>(...args: string[]): Promise<Value>;
  /** The same for a command that ends with 3: executed, but what was asked for is not, or only partly, fulfilled. */
  unfulfilled<Value>(...args: string[]): Promise<Value>;
}

export function commandLine(signpost: () => Pick<Signpost, 'corePort' | 'serviceToken'>): CommandLine {
  const variables = () => {
    const { corePort, serviceToken } = signpost();
    return { ...process.env, CORE_PORT: String(corePort), SERVICE_TOKEN: serviceToken };
  };
  const idle: ChildProcess[] = [];
  const run: CommandLine['run'] = async (args, env) => {
    if (env) return inOwnProcess(args, { ...variables(), ...env });
    const child = idle.pop() ?? startCommandProcess(variables());
    child.send(args satisfies CommandMessage);
    const [outcome] = await once(child, 'message');
    idle.push(child);
    return outcome as Outcome;
  };
  const printed = async (exit: number, args: readonly string[]) => {
    const { code, stdout, stderr } = await run([...args, '--json']);
    expect({ code, stderr }).toEqual({ code: exit, stderr: '' });
    expect(stdout.trimEnd().split('\n')).toHaveLength(1);
    return JSON.parse(stdout);
  };
  return {
    run,
    json: (...args) => printed(0, args),
    unfulfilled: (...args) => printed(EXIT_CODES.unfulfilled, args),
  };
}

function inOwnProcess(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, ['cli/main.ts', ...args], { env }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
    });
  });
}

function startCommandProcess(env: NodeJS.ProcessEnv): ChildProcess {
  const child = fork(join(import.meta.dirname, 'command-process.fixture.ts'), {
    env,
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  // Rejects what waits for an outcome.
  child.once('exit', (code) => child.emit('error', new Error(`The process of the commands has ended with ${code}.`)));
  afterFile(async () => {
    child.removeAllListeners('exit');
    child.disconnect();
  });
  return child;
}
