import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { OperatorError } from '../../common/runtime/operator-error.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import { type SupervisedProcess, superviseProcess } from './supervised-process.ts';

/** Longer than until the next attempt to start a process, in ms. */
const NEXT_ATTEMPT_MS = 1_500;

let folder: string;
let program: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'signpost-supervised-'));
  program = join(folder, 'program.mjs');
  writeFileSync(
    program,
    `process.on('disconnect', () => process.exit());
     process.on('message', ({ type }) => type === 'stop' && process.exit());
     process.send({ type: 'ready' });`,
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Supervised extends SupervisedProcess {
  /** Those that were started or failed to. */
  readonly children: readonly ChildProcess[];
  /** How often a process became ready, and how often one that was ready exited. */
  readonly counts: { ready: number; exits: number };
  /** What `beforeRestart` was called with. */
  readonly crashes: readonly boolean[];
  messages(): string[];
}

/** `options`: of the next start. */
function supervise(options: () => ForkOptions, beforeRestart = async () => {}): Supervised {
  const { lines, logger } = recordingLogger();
  const children: ChildProcess[] = [];
  const counts = { ready: 0, exits: 0 };
  const crashes: boolean[] = [];
  const supervised = superviseProcess({
    name: 'carrier',
    logger,
    start() {
      const child = fork(program, options());
      children.push(child);
      return child;
    },
    onMessage: ({ type }) => void (type === 'ready' && counts.ready++),
    onExit: () => void counts.exits++,
    beforeRestart(crashed) {
      crashes.push(crashed);
      return beforeRestart();
    },
  });
  onTestFinished(() => supervised.stop());
  const messages = () => lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
  return { ...supervised, children, counts, crashes, messages };
}

const EXITED = 'the carrier has exited and is restarted';
const NOT_STARTED = 'the carrier can’t be started; trying again';

describe.each<[string, ForkOptions, string]>([
  ['Node reports in an event', { execPath: '/nowhere/node' }, 'spawn /nowhere/node ENOENT'],
  ['Node throws', { stdio: ['ignore', 'ignore', 'ignore', 'ipc', 99_999] }, 'spawn EBADF'],
])('a failure to start that %s', (_, failing, reason) => {
  test('is logged and tried again until the process is back, if it was ready before', async () => {
    let options: ForkOptions = {};
    const supervised = supervise(() => options);
    await supervised.ready;
    options = failing;
    await supervised.kill();
    const failures = () => supervised.messages().filter((message) => message === NOT_STARTED).length;
    await expect.poll(failures).toBeGreaterThan(1);
    options = {};
    await expect.poll(() => supervised.counts).toEqual({ ready: 2, exits: 1 });
    expect(new Set(supervised.messages())).toEqual(new Set([EXITED, NOT_STARTED]));
  });

  test('rejects `ready` with a sentence, if it was not', async () => {
    const supervised = supervise(() => failing);
    await expect(supervised.ready).rejects.toThrow(new OperatorError(`The carrier can't be started: ${reason}.`));
    await sleep(NEXT_ATTEMPT_MS);
    expect(supervised.messages()).toEqual([]);
  });

  test('is not tried again after a stop, which does not wait', async () => {
    let options: ForkOptions = {};
    const supervised = supervise(() => options);
    await supervised.ready;
    options = failing;
    await supervised.kill();
    await expect.poll(supervised.messages).toContain(NOT_STARTED);
    options = {};
    const { length } = supervised.children;
    await supervised.stop();
    await sleep(NEXT_ATTEMPT_MS);
    expect(supervised.children).toHaveLength(length);
  });
});

test('a process that dies of a full disk before it is ready rejects `ready` with a sentence', async () => {
  const supervised = supervise(() => ({ execArgv: ['--eval', 'process.kill(process.pid, "SIGBUS")'] }));
  const sentence = 'The carrier exited before it was ready, with SIGBUS. Its disk may be full.';
  await expect(supervised.ready).rejects.toThrow(new OperatorError(sentence));
});

test('what must precede a restart is repeated until it succeeds', async () => {
  let failures = 2;
  const supervised = supervise(
    () => ({}),
    async () => {
      if (failures-- > 0) throw new Error('no space');
    },
  );
  await supervised.ready;
  supervised.children[0]?.kill('SIGSEGV');
  await expect.poll(() => supervised.counts).toEqual({ ready: 2, exits: 1 });
  expect(supervised.messages()).toEqual([EXITED, NOT_STARTED, NOT_STARTED]);
  expect(supervised.crashes).toEqual([true, true, true]);
  await supervised.kill();
  await expect.poll(() => supervised.counts).toEqual({ ready: 3, exits: 2 });
  expect(supervised.crashes).toEqual([true, true, true, false]);
});

test('a stop does not wait for what must precede a restart, and no process is started after it', async () => {
  const preceding = Promise.withResolvers<void>();
  const supervised = supervise(
    () => ({}),
    () => preceding.promise,
  );
  await supervised.ready;
  await supervised.kill();
  await expect.poll(() => supervised.crashes).toEqual([false]);
  await supervised.stop();
  preceding.resolve();
  await sleep(NEXT_ATTEMPT_MS);
  expect(supervised.children).toHaveLength(1);
});
