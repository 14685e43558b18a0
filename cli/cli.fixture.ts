import { execFile } from 'node:child_process';
import { expect } from 'vitest';
import type { Signpost } from '../test/harness/processes.ts';
import { EXIT_CODES } from './exit-codes.ts';

/** The result of a command. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs commands of the command line in a separate process. */
export interface CommandLine {
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Outcome>;
  /** The value printed with `--json`, on one line; the command has to succeed without output on standard error. */
  json<Value>(...args: string[]): Promise<Value>;
  /** The same for a command that ends with 3: executed, but what was asked for is not, or only partly, fulfilled. */
  unfulfilled<Value>(...args: string[]): Promise<Value>;
}

export function commandLine(signpost: () => Pick<Signpost, 'corePort' | 'serviceToken'>): CommandLine {
  const run: CommandLine['run'] = (args, env = {}) => {
    const { corePort, serviceToken } = signpost();
    const variables = { ...process.env, CORE_PORT: String(corePort), SERVICE_TOKEN: serviceToken, ...env };
    return new Promise((resolve) => {
      execFile(process.execPath, ['cli/main.ts', ...args], { env: variables }, (error, stdout, stderr) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
      });
    });
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
