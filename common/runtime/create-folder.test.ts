import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createFolder } from './create-folder.ts';

test('creates a folder with those above it, and accepts one that exists', () => {
  const parent = mkdtempSync(join(tmpdir(), 'signpost-folder-'));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  const folder = join(parent, 'above/below');
  createFolder(folder, 0o700);
  createFolder(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  writeFileSync(join(parent, 'file'), '');
  expect(() => createFolder(join(parent, 'file'))).toThrow('EEXIST');
  expect(() => createFolder(join(parent, 'file/below'))).toThrow('EEXIST');
});

test.runIf(process.platform === 'linux')('fails where no folder can be created', () => {
  expect(() => createFolder('/proc/signpost/data')).toThrow('ENOENT');
});
