import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';

const FIXTURE = join(import.meta.dirname, 'stop-request.fixture.ts');

/** Starts the fixture; it is killed after the test if it still runs. */
function start(moment: 'before' | 'after' | 'ready') {
  const child = fork(FIXTURE, [moment]);
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

test('a process that is starting exits when its parent is gone', async ({ expect }) => {
  const child = start('after');
  await once(child, 'message');
  child.disconnect();
  expect(await once(child, 'exit')).toEqual([1, null]);
});

test('a process exits when its parent was gone before it began to listen', async ({ expect }) => {
  const child = start('before');
  child.disconnect();
  expect(await once(child, 'exit')).toEqual([1, null]);
});

test('a process that is ready stops in order when its parent is gone', async ({ expect }) => {
  const child = start('ready');
  await once(child, 'message');
  child.disconnect();
  expect(await once(child, 'exit')).toEqual([0, null]);
});
