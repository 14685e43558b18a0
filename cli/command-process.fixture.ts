import { globalAgent } from 'node:http';
import { runProgram } from './program.ts';

/** A command line to execute, in the environment that the process was started in. */
export type CommandMessage = readonly string[];

/** The result of a command. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Executes the command lines that it receives, one after the other: loading the modules takes most of a command's time.
 */
process.on('message', async (args: CommandMessage) => {
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    process[name].write = (text) => {
      printed[name] += text;
      return true;
    };
  process.exitCode = undefined;
  await runProgram([process.execPath, 'cli/main.ts', ...args]);
  process.stdout.removeAllListeners('error');
  // A command of its own process has no connection yet.
  globalAgent.destroy();
  process.send?.({ code: Number(process.exitCode ?? 0), ...printed } satisfies Outcome);
});
