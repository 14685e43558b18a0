import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isOutdated } from './build-app.ts';

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-app-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes a file that was last changed in that year. */
async function write(path: string, year: number): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, '');
  await utimes(path, new Date(`${year}-01-01`), new Date(`${year}-01-01`));
}

test('pages are built if there is no build, and again after a change of a source', async () => {
  const app = await emptyFolder();
  await write(join(app, 'index.html'), 2024);
  await write(join(app, 'routes/codes.tsx'), 2024);
  expect(await isOutdated(app)).toBe(true);

  await write(join(app, 'dist/index.html'), 2025);
  await write(join(app, 'dist/assets/main.js'), 2026);
  expect(await isOutdated(app)).toBe(false);

  await write(join(app, 'routes/codes.tsx'), 2026);
  expect(await isOutdated(app)).toBe(true);
});

test('pages are built again after a change of what they share', async () => {
  const app = await emptyFolder();
  const shared = await emptyFolder();
  await write(join(app, 'index.html'), 2024);
  await write(join(app, 'dist/index.html'), 2025);
  await write(join(shared, 'qr/matrix.ts'), 2024);
  expect(await isOutdated(app, [shared])).toBe(false);
  await write(join(shared, 'qr/matrix.ts'), 2026);
  expect(await isOutdated(app, [shared])).toBe(true);
});

test('without sources nothing is built', async () => {
  const app = await emptyFolder();
  expect(await isOutdated(join(app, 'missing'))).toBe(false);
  await write(join(app, 'dist/index.html'), 2025);
  expect(await isOutdated(app)).toBe(false);
});
