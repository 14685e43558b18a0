import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Load, Measured } from './load.ts';

/** Runs a load in its own process; undefined when nothing was answered. */
export async function runLoad(load: Load): Promise<Measured | undefined> {
  const process = fork('test/bench/load.ts', [JSON.stringify(load)], { silent: true });
  let output = '';
  process.stdout?.on('data', (text) => {
    output += text;
  });
  await once(process, 'exit');
  return output === '' ? undefined : (JSON.parse(output) as Measured);
}
