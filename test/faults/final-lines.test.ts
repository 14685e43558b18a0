import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { type Process, type Signpost, startSignpost } from '../harness/processes.ts';
import { childrenOf, isThere } from './visitors.ts';

const EVENTUALLY = { interval: 50 };
const SECRET = 'anna@example.com';
/**
 * On SIGUSR2 a process gets an unhandled rejection whose error contains a value from a row. On SIGWINCH it prints such
 * an error to the console, as libraries do, and on SIGURG it causes a warning of Node.js.
 */
const ON_SIGNALS = `data:text/javascript,${encodeURIComponent(
  `const error = Object.assign(new Error('unforeseen'), { detail: '${SECRET}' });
   process.on('SIGUSR2', () => Promise.reject(error));
   process.on('SIGWINCH', () => console.trace(error));
   process.on('SIGURG', () => process.emitWarning('unusual'));`,
)}`;

let signpost: Signpost;
beforeAll(async () => {
  signpost = await startSignpost({ env: { NODE_OPTIONS: `--import=${ON_SIGNALS}` } });
  for (const each of [...signpost.cores, ...signpost.gateways]) await expectReady(each);
});

/** Lines are written in the background: one that is under way would follow the last one, which is written at once. */
async function expectReady(process: Process, length = 0): Promise<void> {
  await vi.waitUntil(async () => (await process.log()).slice(length).includes('is ready'), { timeout: 30_000 });
}

/** Restarts processes that a test ends. */
function restartAfterTest(...processes: readonly Process[]): void {
  onTestFinished(async () => {
    for (const process of processes) {
      const { length } = await process.log();
      await process.restart();
      await expectReady(process, length);
    }
  });
}

/** The lines that a process has logged since its log had this length. */
async function lines(process: Process, length: number): Promise<Record<string, unknown>[]> {
  return (
    (await process.log())
      .slice(length)
      .trimEnd()
      .split('\n')
      // Skips Node's own warnings.
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
  );
}

const FATAL = {
  level: 60,
  msg: 'the process exits after an unexpected error',
  origin: 'unhandledRejection',
  err: { message: 'unforeseen', stack: expect.stringContaining('data:text/javascript') },
};

test.each([
  ['core', () => signpost.cores[0]],
  ['gateway', () => signpost.gateways[0]],
])('a %s with an unhandled rejection exits with a non-zero code and logs the reason last', async (_, which) => {
  const failing = which();
  if (!failing) throw new Error('no such process');
  const { length } = await failing.log();
  restartAfterTest(failing);
  process.kill(failing.pid, 'SIGUSR2');
  expect(await failing.ended).toMatch(/with code 1\./);
  // Children of a gateway end after it, each with its own last line.
  const own = (await lines(failing, length)).filter(({ part }) => part === undefined);
  expect(own.at(-1)).toMatchObject(FATAL);
  expect(await failing.log()).not.toContain(SECRET);
});

test('a gateway’s worker and carrier do the same, and are replaced', async () => {
  const [gateway] = signpost.gateways;
  if (!gateway) throw new Error('no such process');
  const children = await childrenOf(gateway, 'gateway/');
  expect(children).toHaveLength(2);
  const { length } = await gateway.log();
  for (const child of children) process.kill(child, 'SIGUSR2');
  await expect.poll(() => children.some(isThere), EVENTUALLY).toBe(false);
  for (const part of ['worker 0', 'carrier']) {
    const own = (await lines(gateway, length)).filter((line) => line.part === part);
    expect(own.findLast(({ level }) => level === 60)).toMatchObject(FATAL);
  }
  await expect
    .poll(
      () =>
        fetch(`${signpost.url}/healthz`).then(
          ({ status }) => status,
          () => 0,
        ),
      EVENTUALLY,
    )
    .toBe(200);
  await expect.poll(() => childrenOf(gateway, 'gateway/'), EVENTUALLY).toHaveLength(2);
});

test('what a library prints to the console of a core becomes a line of its log', async () => {
  const [core] = signpost.cores;
  if (!core) throw new Error('no such process');
  const { length } = await core.log();
  process.kill(core.pid, 'SIGWINCH');
  await expect.poll(async () => (await core.log()).slice(length), EVENTUALLY).toContain('unforeseen');
  expect((await lines(core, length)).at(-1)).toMatchObject({
    level: 40,
    msg: 'a library wrote to the console',
    err: { message: 'unforeseen' },
  });
  expect(await core.log()).not.toMatch(/^(Trace| {4}at )/m);
  expect(await core.log()).not.toContain(SECRET);
});

test.each([
  ['core', () => signpost.cores[0]],
  ['gateway', () => signpost.gateways[0]],
])('a warning of Node.js becomes a line of the log of a %s', async (_, which) => {
  const warned = which();
  if (!warned) throw new Error('no such process');
  const { length } = await warned.log();
  process.kill(warned.pid, 'SIGURG');
  await expect.poll(async () => (await warned.log()).slice(length), EVENTUALLY).toContain('unusual');
  const line = (await lines(warned, length)).find(({ msg }) => msg === 'Node.js warns');
  expect(line).toMatchObject({ level: 40, err: { message: 'unusual' } });
  expect(await warned.log()).not.toMatch(/^\(node:/m);
});

test('every process that is stopped by SIGTERM logs last that it has stopped', async () => {
  const processes = [...signpost.cores, ...signpost.gateways];
  const before = await Promise.all(processes.map((each) => each.log()));
  restartAfterTest(...processes);
  for (const each of processes.toReversed()) await each.kill('SIGTERM');
  const [core = [], gateway = []] = await Promise.all(
    processes.map((each, index) => lines(each, before[index]?.length ?? 0)),
  );
  expect(core.at(-1)).toMatchObject({ msg: 'the core has stopped' });
  expect(gateway.at(-1)).toMatchObject({ msg: 'the gateway has stopped' });
  expect(gateway.map(({ msg }) => msg)).toEqual(
    expect.arrayContaining(['the worker has stopped', 'the carrier has stopped']),
  );
});

test('the children of a killed gateway log why they exit', async () => {
  const [gateway] = signpost.gateways;
  if (!gateway) throw new Error('no such process');
  const children = await childrenOf(gateway, 'gateway/');
  expect(children).toHaveLength(2);
  const { length } = await gateway.log();
  restartAfterTest(gateway);
  await gateway.kill();
  await expect.poll(() => children.some(isThere), EVENTUALLY).toBe(false);
  const exits = (await lines(gateway, length)).filter(
    ({ msg }) => msg === 'the gateway’s main process is gone; this process exits too',
  );
  expect(exits.map(({ part }) => part).sort(), await gateway.log()).toEqual(['carrier', 'worker 0']);
});
