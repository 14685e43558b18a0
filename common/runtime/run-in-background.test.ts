import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';

const FIXTURE = join(import.meta.dirname, 'run-in-background.fixture.ts');

async function run(detached: boolean): Promise<{ threads: number[]; before: string; after: string }> {
  const child = spawn(process.execPath, [FIXTURE], { detached, stdio: ['ignore', 'pipe', 'inherit'] });
  return JSON.parse(await text(child.stdout));
}

test.runIf(process.platform === 'linux')('all threads of a process in the background have a low priority', async () => {
  const { threads } = await run(false);
  expect(threads.length).toBeGreaterThan(1);
  expect(new Set(threads)).toEqual(new Set([10]));
});

test.runIf(process.platform === 'linux')(
  'a process with a session of its own lowers the priority of its group',
  async () => {
    const { before, after } = await run(true);
    // Empty on a kernel without groups.
    expect(after).toBe(before.replace('nice 0', 'nice 10'));
  },
);

test.runIf(process.platform === 'linux')('a process does not change the group that it shares with others', async () => {
  const { before, after } = await run(false);
  expect(after).toBe(before);
});
