import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { openFileLock } from '../../../common/runtime/file-lock.ts';
import { openWriterLock, type WriterLock } from './writer-lock.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signpost-writer-lock-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function open(): WriterLock {
  const lock = openWriterLock(folder, pino({ level: 'silent' }));
  onTestFinished(() => lock.close());
  return lock;
}

test('a change that waits is written before the next routes of the topic', async () => {
  const [topic, changes] = [open(), open()];
  const order: string[] = [];
  let change: Promise<void> | undefined;
  await topic.alone(() => {
    order.push('topic');
    change = changes.alone(() => void order.push('change'), true);
  }, false);
  for (let more = 0; more < 3; more++) await topic.alone(() => void order.push('topic'), false);
  await change;
  expect(order).toEqual(['topic', 'change', 'topic', 'topic', 'topic']);
});

test('a process that is suspended while it waits with a change does not keep the topic from being written', async () => {
  const suspended = openFileLock(join(folder, 'urgent.lock'));
  onTestFinished(() => suspended.close());
  expect(suspended.take()).toBeDefined();
  let written = false;
  await open().alone(() => {
    written = true;
  }, false);
  expect(written).toBe(true);
});
