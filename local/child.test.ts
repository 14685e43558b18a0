import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startChild } from './child.ts';

async function startIn(folder: string) {
  const program = join(folder, 'program.mjs');
  await writeFile(program, "console.log('it listens'); process.send({ type: 'ready' }); setInterval(() => {}, 1_000);");
  return startChild({ name: 'program', program, env: {}, log: join(folder, 'program.log') });
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-child-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

test('once a process is stopped, its folder may be deleted', async () => {
  const folder = await newFolder();
  const child = await startIn(folder);
  await child.stop('SIGKILL');
  await rm(folder, { recursive: true });
  expect(await child.ended).toMatch(/^The program ended by SIGKILL\. The end of .*program\.log:\nit listens$/);
});

test('a process that can’t be started is an error that says why', async () => {
  vi.spyOn(process, 'execPath', 'get').mockReturnValue('/nowhere/node');
  onTestFinished(() => void vi.restoreAllMocks());
  await expect(startIn(await newFolder())).rejects.toThrow(
    'The program could not be started: spawn /nowhere/node ENOENT.',
  );
});

test('a process whose log was deleted meanwhile says so when it ends', async () => {
  const folder = await newFolder();
  const child = await startIn(folder);
  await rm(folder, { recursive: true });
  await child.stop();
  expect(await child.ended).toMatch(/^The program ended by SIGTERM\. What it wrote to .*program\.log can't be read\.$/);
});
