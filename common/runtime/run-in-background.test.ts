import { execFileSync, spawn } from 'node:child_process';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';

const FIXTURE = join(import.meta.dirname, 'run-in-background.fixture.ts');
const THREAD_FIXTURE = join(import.meta.dirname, 'run-thread-in-background.fixture.ts');
const NICE = Math.max(10, getPriority());

/** `command`: the program that starts the fixture, and its arguments. */
async function run(
  { detached }: { detached: boolean },
  command = [process.execPath],
): Promise<{ threads: number[]; before: string; after: string }> {
  const [program = '', ...args] = [...command, FIXTURE, ...(detached ? ['wait'] : [])];
  const child = spawn(program, args, { detached, stdio: ['ignore', 'pipe', 'inherit'] });
  return JSON.parse(await text(child.stdout));
}

describe.runIf(process.platform === 'linux')('a process in the background', () => {
  test('has a low priority in all of its threads', async () => {
    const { threads } = await run({ detached: false });
    expect(threads.length).toBeGreaterThan(1);
    expect(new Set(threads)).toEqual(new Set([NICE]));
  });

  test('can have a single thread of a low priority', () => {
    const { main, thread } = JSON.parse(execFileSync(process.execPath, [THREAD_FIXTURE], { encoding: 'utf8' }));
    expect({ main, thread }).toEqual({ main: getPriority(), thread: NICE });
  });

  test('keeps a priority that is lower still', async () => {
    const { threads } = await run({ detached: false }, ['nice', '-n', '19', process.execPath]);
    expect(new Set(threads)).toEqual(new Set([19]));
  });

  test('lowers the priority of its group if it leads its session', async () => {
    const { before, after } = await run({ detached: true });
    // Empty on a kernel without groups.
    expect(after).toBe(before.replace('nice 0', 'nice 10'));
  });

  test('does not change the group that it shares with others', async () => {
    const { before, after } = await run({ detached: false });
    expect(after).toBe(before);
  });
});
