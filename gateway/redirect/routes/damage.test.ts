import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { tableIsDamaged } from './damage.ts';
import { openRouteTable } from './route-table.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signpost-damage-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const writeTable = () => openRouteTable(folder, pino({ level: 'silent' })).close();

test('a missing table and a readable one are not damaged', async () => {
  expect(await tableIsDamaged(folder)).toBe(false);
  await writeTable();
  expect(await tableIsDamaged(folder)).toBe(false);
});

test('a table of anything else is damaged', async () => {
  writeFileSync(join(folder, 'data.mdb'), Buffer.alloc(64 * 1_024, 'nonsense'));
  expect(await tableIsDamaged(folder)).toBe(true);
});

test('a check that dies before it opens the table says nothing about it', async () => {
  await writeTable();
  vi.stubEnv('NODE_OPTIONS', `--import=data:text/javascript,${encodeURIComponent('process.abort()')}`);
  await expect(tableIsDamaged(folder)).rejects.toThrow('SIGABRT');
});
