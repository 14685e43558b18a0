import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'lmdb';
import { expect, onTestFinished, test } from 'vitest';
import { residentFilesBytes } from './process-metrics.ts';

test.runIf(process.platform === 'linux')('pages of a route table that were read are pages of files', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-memory-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const table = open({ path: join(folder, 'table'), encoding: 'binary' });
  onTestFinished(() => table.close());
  const value = Buffer.alloc(2 ** 20, 1);
  const keys = Array.from({ length: 64 }, (_, key) => key);
  await table.batch(() => {
    for (const key of keys) table.put(key, value);
  });
  const before = await residentFilesBytes();
  for (const key of keys) table.getBinaryFast(key);
  const grown = (await residentFilesBytes()) - before;
  expect(grown).toBeGreaterThan(60 * 2 ** 20);
  expect(process.memoryUsage.rss()).toBeGreaterThan(await residentFilesBytes());
});
