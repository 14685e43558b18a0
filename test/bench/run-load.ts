import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Load, Measured } from './load.ts';

/** What came of a load in a process of its own; undefined when nothing was answered. */
export async function runLoad(load: Load): Promise<Measured | undefined> {
  const process = fork('test/bench/load.ts', [JSON.stringify(load)], { silent: true });
  let printed = '';
  process.stdout?.on('data', (text) => {
    printed += text;
  });
  await once(process, 'exit');
  return printed === '' ? undefined : (JSON.parse(printed) as Measured);
}
