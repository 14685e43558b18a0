import { createInterface } from 'node:readline/promises';
import { type Command, InvalidArgumentError } from 'commander';

/** A whole number of things. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** The option that most commands need. */
export function ofAccount(command: Command): Command {
  return command.requiredOption('--account <id>', 'acct_…');
}

/** Options of a list, newest first, of which all is shown unless there is a `standard` number. */
export function paged(command: Command, what: string, standard?: number): Command {
  return command
    .option(`--limit <${what}>`, 'at most so many', wholeNumber, standard)
    .option(`--offset <${what}>`, 'leave out so many of the newest', wholeNumber);
}

/** An example below the help of a command; `line`: what follows the program's name. */
export function example(command: Command, line: string): Command {
  return command.addHelpText('after', `\nExample:\n  $ npm run signpost -- ${line}`);
}

/** Asks a person; a program, which can't be asked, meant what it said. */
export async function agreed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return true;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`${question} [y/N] `);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

/** A moment. */
export function time(text: string): Date {
  const read = new Date(text);
  if (Number.isNaN(read.getTime())) throw new InvalidArgumentError('It must be a time, such as 2026-11-20T09:00:00Z.');
  return read;
}
