import { createInterface } from 'node:readline/promises';
import { type Command, InvalidArgumentError } from 'commander';

/** Parses a whole number. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** Adds the option `--account`. */
export function ofAccount(command: Command): Command {
  return command.requiredOption('--account <id>', 'acct_…');
}

/** Adds the options of a list, newest first, which by default shows all items or `defaultLimit` of them. */
export function paged(command: Command, what: string, defaultLimit?: number): Command {
  return command
    .option(`--limit <${what}>`, 'the maximum number to show', wholeNumber, defaultLimit)
    .option(`--offset <${what}>`, 'the number of newest ones to skip', wholeNumber);
}

/** Adds an example to the help of a command; `line`: the arguments of the program. */
export function example(command: Command, line: string): Command {
  return command.addHelpText('after', `\nExample:\n  $ npm run signpost -- ${line}`);
}

/** Asks for confirmation on a terminal; without one, confirms at once. */
export async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return true;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`${question} [y/N] `);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

/** Parses a time. */
export function time(text: string): Date {
  const read = new Date(text);
  if (Number.isNaN(read.getTime())) throw new InvalidArgumentError('It must be a time, such as 2026-11-20T09:00:00Z.');
  return read;
}
