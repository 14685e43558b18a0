import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';

/** Every write to it fails with ENOSPC, as on a full disk. */
const FULL = '/dev/full';

/** Runs a program that logs to a full disk; returns how it ended, and what it wrote to standard error. */
async function runOnFullDisk(program: string): Promise<{ ended: unknown[]; errors: string }> {
  const full = openSync(FULL, 'w');
  const modules = `
    const { exitOnFatalErrors } = await import('./common/runtime/fatal-errors.ts');
    const { openLogger } = await import('./common/runtime/logger.ts');
    const { setTimeout: sleep } = await import('node:timers/promises');
    const logger = openLogger('info', {});
    exitOnFatalErrors(logger);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', `${modules}${program}`], {
    stdio: ['ignore', full, 'pipe'],
    timeout: 20_000,
    killSignal: 'SIGKILL',
  });
  closeSync(full);
  const [ended, errors] = await Promise.all([once(child, 'exit'), text(child.stderr as Readable)]);
  return { ended, errors };
}

test.skipIf(!existsSync(FULL)).each([
  ['continues, and stops when it is asked to', `process.exit();`, [0, null]],
  ['exits after an unexpected error', `throw new Error('unexpected');`, [1, null]],
])('a process whose log can’t be written %s', async (_, end, ended) => {
  const program = `
    for (let line = 0; line < 10_000; line++) logger.info('x'.repeat(1_000));
    await sleep(500);
    logger.info('the last line');
    ${end}`;
  expect(await runOnFullDisk(program)).toEqual({ ended, errors: '' });
});

test('lines that could not be written are written once they can be, and none is torn', async () => {
  const program = `
    const { openLogger } = await import('./common/runtime/logger.ts');
    const { default: fs } = await import('node:fs');
    const { syncBuiltinESMExports } = await import('node:module');
    const { write } = fs;
    let failures = 0;
    fs.write = (fd, bytes, done) => {
      if (failures++ % 2 === 1) setImmediate(done, Object.assign(new Error(), { code: 'ENOSPC' }), 0);
      else write(fd, bytes, 0, Math.min(bytes.length, 700), done);
    };
    syncBuiltinESMExports();
    const logger = openLogger('info', {});
    for (let line = 1; line <= 10; line++) logger.info({ line, text: 'é'.repeat(100) });
    setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 20_000,
    killSignal: 'SIGKILL',
  });
  let written = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    written += chunk;
    // A process that exits by itself would write at its end what it has not written.
    if (written.split('\n').length > 10) child.kill('SIGKILL');
  }
  const lines = written.trim().split('\n');
  expect(lines.map((line) => JSON.parse(line).line)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});
