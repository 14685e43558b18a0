import { execFile } from 'node:child_process';
import { expect } from 'vitest';
import type { Signpost } from '../test/harness/processes.ts';

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
}

export function commandLine(signpost: () => Signpost): CommandLine {
  const run: CommandLine['run'] = (args, env = {}) => {
    const { corePort, serviceToken } = signpost();
    const variables = { ...process.env, CORE_PORT: String(corePort), SERVICE_TOKEN: serviceToken, ...env };
    return new Promise((resolve) => {
      execFile(process.execPath, ['cli/main.ts', ...args], { env: variables }, (error, stdout, stderr) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
      });
    });
  };
  return {
    run,
    async json<Value>(...args: string[]): Promise<Value> {
      const { code, stdout, stderr } = await run([...args, '--json']);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout.trimEnd().split('\n')).toHaveLength(1);
      return JSON.parse(stdout) as Value;
    },
  };
}
