import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { lockFile } from '../../common/runtime/file-lock.ts';
import { killOrphanedProcesses, processLock } from './process-lock.ts';

/** Larger than any process id. */
const NO_PID = 2 ** 30;

test('a process that exits before it is killed has ended', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'signpost-locks-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  mkdirSync(join(dataDir, 'processes'));
  const lock = lockFile(processLock(dataDir, NO_PID));
  const ended = killOrphanedProcesses(dataDir, pino({ level: 'silent' }));
  lock?.[Symbol.dispose]();
  expect(await ended).toBe(true);
  expect(readdirSync(join(dataDir, 'processes'))).toEqual([]);
});
