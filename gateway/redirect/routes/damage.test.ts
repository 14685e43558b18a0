import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { tableIsDamaged } from './damage.ts';
import { repairRouteTable } from './repair.ts';
import { openRouteTable } from './route-table.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signpost-damage-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const logger = pino({ level: 'silent' });
const writeTable = () => openRouteTable(folder, logger).close();

/** Runs a program in place of the check. */
function stubCheck(program: string): void {
  vi.stubEnv('NODE_OPTIONS', `--import=data:text/javascript,${encodeURIComponent(program)}`);
}

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
  stubCheck('process.abort()');
  await expect(tableIsDamaged(folder)).rejects.toThrow('SIGABRT');
});

const dieOf = (signal: string) => `
  import { writeSync } from 'node:fs';
  writeSync(1, 'begun');
  process.kill(process.pid, '${signal}');
  await new Promise((resolve) => setTimeout(resolve, 60_000));
`;

test('a check that others end says nothing about the table, which is kept', async () => {
  await writeTable();
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGKILL']) {
    stubCheck(dieOf(signal));
    const killUsers = vi.fn();
    await expect(repairRouteTable({ table: folder, killUsers, logger })).rejects.toThrow(signal);
    expect(killUsers).not.toHaveBeenCalled();
    expect(existsSync(join(folder, 'data.mdb'))).toBe(true);
  }
});

test('a table is damaged on which the check crashes', async () => {
  await writeTable();
  stubCheck(dieOf('SIGSEGV'));
  expect(await tableIsDamaged(folder)).toBe(true);
});
