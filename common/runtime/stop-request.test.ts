import { fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const FIXTURE = join(import.meta.dirname, 'stop-request.fixture.ts');

/** Makes a command the first process of a container. */
const CONTAINER = ['--user', '--map-root-user', '--pid', '--mount-proc', '--fork', '--kill-child'];
const hasContainers = spawnSync('unshare', [...CONTAINER, 'true']).status === 0;

/** Starts the fixture; it is killed after the test if it still runs. */
function start(moment: 'before' | 'after' | 'ready') {
  const child = fork(FIXTURE, [moment]);
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

test('a process that is starting exits when its parent is gone', async () => {
  const child = start('after');
  await once(child, 'message');
  child.disconnect();
  expect(await once(child, 'exit')).toEqual([1, null]);
});

test('a process exits when its parent was gone before it began to listen', async () => {
  const child = start('before');
  child.disconnect();
  expect(await once(child, 'exit')).toEqual([1, null]);
});

test('a process that is ready stops in order when its parent is gone', async () => {
  const child = start('ready');
  await once(child, 'message');
  child.disconnect();
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test.runIf(hasContainers).each([
  ['starting exits', 'after', 128 + 15],
  ['ready stops in order', 'ready', 0],
] as const)('the first process of a container that is %s when it is asked to stop', async (_, moment, code) => {
  const child = spawn('unshare', [...CONTAINER, process.execPath, FIXTURE, moment, 'SIGTERM'], { stdio: 'inherit' });
  onTestFinished(() => void child.kill('SIGKILL'));
  expect(await once(child, 'exit')).toEqual([code, null]);
});
