import { createInterface } from 'node:readline/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { COLOUR } from '../common/codes/colour.ts';
import type { Range } from '../common/contract/ranges.ts';
import { UsageError } from './core.ts';
import { onOneLine } from './output.ts';

/** Parses a whole number. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** Parses a whole number of at least one. */
export function atLeastOne(text: string): number {
  const number = wholeNumber(text);
  if (number === 0) throw new InvalidArgumentError('It must be at least 1.');
  return number;
}

/** A range, as the help of an option shows it. */
export function shownRange({ least, most, fallback }: Range): string {
  return `${least} to ${most} (default: ${fallback})`;
}

/** Returns a parser of whole numbers in a range. */
export function wholeNumberIn({ least, most }: Range): (text: string) => number {
  return (text) => {
    const number = wholeNumber(text);
    if (number < least || number > most) throw new InvalidArgumentError(`It must be from ${least} to ${most}.`);
    return number;
  };
}

/** Parses comma-separated values. `previous`: those of the same option before. */
export function splitList(text: string, previous: readonly string[] = []): string[] {
  return [...previous, ...text.split(',').map((each) => each.trim())];
}

/** Parses a colour of an image or page. */
export function colour(text: string): string {
  if (!COLOUR.test(text)) throw new InvalidArgumentError('It must be #rgb or #rrggbb.');
  return text;
}

/** Adds the option `--account`. */
export function ofAccount(command: Command): Command {
  return command.requiredOption('--account <id>', 'acct_…', (id) => {
    // It is sent as metadata, which can contain nothing else.
    if (!/^[\x21-\x7e]+$/.test(id)) throw new InvalidArgumentError('It must be the id of an account, acct_….');
    return id;
  });
}

/** Adds the options of a list, newest first, which by default shows all items or `defaultLimit` of them. */
export function paged(command: Command, what: string, defaultLimit?: number): Command {
  return command
    .option(`--limit <${what}>`, 'the maximum number to show', atLeastOne, defaultLimit)
    .option(`--offset <${what}>`, 'the number of newest ones to skip', wholeNumber);
}

/** Adds an example to the help of a command; `line`: the arguments of the program. */
export function example(command: Command, line: string): Command {
  return command.addHelpText('after', `\nExample:\n  $ npm run signpost -- ${line}`);
}

/**
 * Adds the option `--yes` to a command that can't be undone; its action calls `expectConfirmed`. `--json`, which is for
 * programs, implies it where there is no terminal.
 */
export function destructive(command: Command): Command {
  return command
    .option('--yes', 'don’t ask for confirmation; required without a terminal, except with --json', false)
    .hook('preAction', (_, action) => {
      if (action.optsWithGlobals<{ json?: boolean }>().json && !hasTerminal()) action.setOptionValue('yes', true);
    });
}

/** Whether a person can be asked: with standard error elsewhere, nobody sees a question. */
function hasTerminal(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/**
 * Returns if `--yes` was given or a person confirms on the terminal. Without a terminal `--yes` or `--json` is
 * required: a script that pipes something into the command has confirmed nothing. `consequence`: a sentence about what
 * would happen, which may contain names given by customers.
 */
export async function expectConfirmed({ yes }: { readonly yes: boolean }, consequence: string): Promise<void> {
  if (yes) return;
  const sentence = onOneLine(consequence);
  if (!hasTerminal()) throw new UsageError(`${sentence} Add --yes to confirm, as there is no terminal to ask.`);
  if (!/^y(es)?$/i.test((await ask(`${sentence} Continue? [y/N] `)).trim()))
    throw new UsageError('Nothing was changed.');
}

/** Asks on the terminal. Ctrl-C and Ctrl-D are an empty answer. */
async function ask(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await terminal.question(question);
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
    process.stderr.write('\n');
    return '';
  } finally {
    terminal.close();
  }
}

/**
 * Parses a time of ISO 8601: in this machine's time zone unless it states one; a day alone is its start in UTC. `Date`
 * also takes 30 February for 2 March, `12/11/2026` for a day in December, and `7` for July 2001.
 */
export function time(text: string): Date {
  const [, day] = /^(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?$/i.exec(text) ?? [];
  const read = new Date(text);
  if (day === undefined || startOfDay(day) === undefined || Number.isNaN(read.getTime()))
    throw new InvalidArgumentError('It must be a time, such as 2026-11-20T09:00:00Z.');
  return read;
}

/** The start of a UTC day, `YYYY-MM-DD`, in ms since 1970; undefined if there is no such day. */
export function startOfDay(text: string): number | undefined {
  const start = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  return !Number.isNaN(start) && new Date(start).toISOString().startsWith(text) ? start : undefined;
}
