import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';

const TAIL_LINES = 8;

/** The last lines that a process appended to a log after its first `from` bytes. */
export async function tail(log: string, from: number): Promise<string> {
  const path = relative(process.cwd(), log);
  let written: string;
  try {
    written = (await readFile(log)).subarray(from).toString().trimEnd();
  } catch {
    return `What it wrote to ${path} can't be read.`;
  }
  if (written === '') return `It wrote nothing to ${path}.`;
  return `The end of ${path}:\n${written.split('\n').slice(-TAIL_LINES).join('\n')}`;
}
