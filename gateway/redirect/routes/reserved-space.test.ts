import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ReservedSpace } from './reserved-space.ts';

const folder = mkdtempSync(join(tmpdir(), 'signpost-small-disk-'));
const mayMount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'signpost-test', folder]).status === 0;
if (!mayMount && process.env.CI === 'true') throw new Error('The test of a full disk must be run as root.');

test.skipIf(!mayMount)('LMDB never meets a full disk', () => {
  onTestFinished(() => {
    execFileSync('umount', ['--lazy', folder]);
    rmSync(folder, { recursive: true });
  });
  const writer = spawnSync(process.execPath, [join(import.meta.dirname, 'full-disk-writer.fixture.ts'), folder], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(writer.stderr).toBe('');
  const { failed, written, errors } = JSON.parse(writer.stdout);
  expect(errors).toEqual(['ENOSPC']);
  expect(failed).toBeGreaterThan(100);
  // Routes fit again once the disk has space.
  expect(written).toBe(true);
});

test('space is reserved once, in large steps', () => {
  const parent = mkdtempSync(join(tmpdir(), 'signpost-space-'));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  const path = join(parent, 'data');
  writeFileSync(path, 'data');
  const space = new ReservedSpace(path);
  onTestFinished(() => space.close());
  space.ensure(4);
  expect(statSync(path).size).toBe(4);
  space.ensure(5);
  expect(statSync(path).size).toBe(4 + 1024 * 1024);
  space.ensure(1024 * 1024);
  expect(statSync(path).size).toBe(4 + 1024 * 1024);
  space.ensure(5 * 1024 * 1024);
  expect(statSync(path).size).toBe(5 * 1024 * 1024);
});
