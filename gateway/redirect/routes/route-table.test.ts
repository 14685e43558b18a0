import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { open } from 'lmdb';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { encodeId, newUuid } from '../../../common/contract/ids.ts';
import { Answer, type Route, RouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { ReservedSpace } from './reserved-space.ts';
import { openRouteTable, type RouteTable } from './route-table.ts';

const logger = pino({ level: 'silent' });
const [codeId, accountId] = [encodeId('qr', newUuid()), encodeId('acct', newUuid())];
let folder: string;
let table: RouteTable;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signpost-routes-'));
  table = openRouteTable(folder, logger);
});
afterEach(async () => {
  await table.close();
  rmSync(folder, { recursive: true });
});

async function reopen(): Promise<void> {
  await table.close();
  table = openRouteTable(folder, logger);
}

function code(version: bigint, targetUrl: string): Route {
  const value = { shortCode: 'abcdefg', codeId, accountId, answer: Answer.REDIRECT, targetUrl };
  return create(RouteSchema, { version, entry: { case: 'code', value } });
}

function route(shortCode: string): Route {
  const value = { shortCode, codeId, accountId, answer: Answer.REDIRECT, targetUrl: 'https://example.com/' };
  return create(RouteSchema, { version: 1n, entry: { case: 'code', value } });
}

function host(version: bigint, removed: boolean): Route {
  const value = { hostname: 'go.example.com', accountId, removed };
  return create(RouteSchema, { version, entry: { case: 'host', value } });
}

const START = { partition: 0, next: 1n };

const modes = (path: string) => ['.', 'data.mdb', 'lock.mdb'].map((name) => statSync(join(path, name)).mode & 0o777);

test('is complete once it has contained a topic, also after that topic was replaced', async () => {
  expect(table.isComplete()).toBe(false);
  await table.beginTopic('first');
  expect(table.isComplete()).toBe(false);
  await reopen();
  expect(table.isComplete()).toBe(false);
  await table.markComplete();
  await reopen();
  expect(table.isComplete()).toBe(true);
  await table.beginTopic('second');
  expect(table.isComplete()).toBe(true);
});

test('no other user of the machine can read the table, neither a new one nor one that an older version created', async () => {
  const made = join(folder, 'routes');
  const another = openRouteTable(made, logger);
  onTestFinished(() => another.close());
  expect(modes(made)).toEqual([0o700, 0o600, 0o600]);
  await table.apply(code(1n, 'https://one.example'));
  chmodSync(folder, 0o755);
  for (const name of ['data.mdb', 'lock.mdb']) chmodSync(join(folder, name), 0o664);
  await reopen();
  expect(modes(folder)).toEqual([0o700, 0o600, 0o600]);
  expect(table.code('abcdefg')?.targetUrl).toBe('https://one.example');
});

test('a change is visible at once, and still after a restart', async () => {
  expect(table.code('abcdefg')).toBeUndefined();
  await table.apply(code(1n, 'https://one.example'));
  expect(table.code('abcdefg')?.targetUrl).toBe('https://one.example');
  await reopen();
  expect(table.code('abcdefg')?.targetUrl).toBe('https://one.example');
});

test('a change is visible also to look-ups that share their snapshot with one right before it', async () => {
  await table.apply(host(1n, false));
  setImmediate(() => table.customDomain('go.example.com'));
  await table.apply(host(2n, true));
  expect(table.customDomain('go.example.com')?.removed).toBe(true);
});

test('the higher version wins, in whatever order they arrive', async () => {
  await table.apply(code(3n, 'https://three.example'));
  await table.advance([code(2n, 'https://two.example')], START);
  expect(table.code('abcdefg')?.targetUrl).toBe('https://three.example');
  await table.advance([code(5n, 'https://five.example'), code(4n, 'https://four.example')], START);
  expect(table.code('abcdefg')?.targetUrl).toBe('https://five.example');
  await reopen();
  await table.advance([code(4n, 'https://four.example')], START);
  expect(table.code('abcdefg')?.targetUrl).toBe('https://five.example');
});

test('routes that share a commit are visible once it resolves, by version, and still after a restart', async () => {
  await table.apply(code(2n, 'https://two.example'));
  expect(table.code('abcdefg')?.targetUrl).toBe('https://two.example');
  const versions = [5n, 3n, 9n, 4n, 8n];
  const soon = versions.map((version) => table.apply(code(version, `https://${version}.example`)));
  await table.apply(code(7n, 'https://7.example'));
  await table.advance([code(6n, 'https://6.example')], START);
  await Promise.all(soon);
  expect(table.code('abcdefg')?.targetUrl).toBe('https://9.example');
  await reopen();
  expect(table.code('abcdefg')?.targetUrl).toBe('https://9.example');
});

test('after many versions in a row the newest is on disk', async () => {
  for (let version = 1n; version <= 50n; version++) await table.apply(code(version, `https://example.com/${version}`));
  await table.apply(code(7n, 'https://late.example'));
  expect(table.code('abcdefg')?.targetUrl).toBe('https://example.com/50');
  await table.advance([], START);
  expect(table.code('abcdefg')?.targetUrl).toBe('https://example.com/50');
  await reopen();
  expect(table.code('abcdefg')?.targetUrl).toBe('https://example.com/50');
});

test('the answer to a change does not wait until the whole topic is applied', async () => {
  const routes = Array.from({ length: 1_000 }, (_, version) => code(BigInt(version), 'https://topic.example'));
  const topic = table.advance(routes, START).then(() => 'topic');
  const answer = table.apply(code(5_000n, 'https://answer.example')).then(() => 'answer');
  expect(await Promise.race([topic, answer])).toBe('answer');
  expect(table.code('abcdefg')?.targetUrl).toBe('https://answer.example');
  await topic;
  expect(table.code('abcdefg')?.targetUrl).toBe('https://answer.example');
});

test('a removed custom domain still belongs to its account', async () => {
  expect(table.customDomain('go.example.com')).toBeUndefined();
  await table.advance([host(1n, false)], START);
  expect(table.customDomain('go.example.com')?.accountId).toBe(accountId);
  await table.advance([host(2n, true)], START);
  expect(table.customDomain('go.example.com')).toMatchObject({ accountId, removed: true });
});

test('positions survive a restart together with their routes', async () => {
  expect(table.positions()).toEqual(new Map());
  await table.advance([code(1n, 'https://one.example')], { partition: 3, next: 17n });
  await table.advance([], { partition: 11, next: 2n ** 60n });
  await reopen();
  expect(table.positions()).toEqual(
    new Map([
      [3, 17n],
      [11, 2n ** 60n],
    ]),
  );
});

/** The number of commits of all processes so far. */
function commits(): number {
  const store = open({ path: folder, readOnly: true });
  const { lastTxnId } = store.getStats() as { lastTxnId: number };
  store.close();
  return lastTxnId;
}

test('many routes that arrive together, such as those of a new gateway, are written a few hundred at a time', async () => {
  await table.apply(code(7n, 'https://seven.example'));
  const before = commits();
  await Promise.all(Array.from({ length: 500 }, (_, n) => table.apply(route(`many${n}`))));
  expect(commits()).toBe(before + 3);
  for (const shortCode of ['many0', 'many250', 'many499']) expect(table.code(shortCode)).toBeDefined();
});

test('a route that the table has is not written again, and its position is written later', async () => {
  await table.apply(code(7n, 'https://seven.example'));
  const before = commits();
  await table.apply(code(7n, 'https://seven.example'));
  await table.advance([code(7n, 'https://seven.example'), code(6n, 'https://six.example')], { partition: 2, next: 9n });
  expect(commits()).toBe(before);
  expect(table.positions()).toEqual(new Map([[2, 9n]]));
  await expect.poll(commits).toBe(before + 1);
  const other = openRouteTable(folder, logger);
  onTestFinished(() => other.close());
  expect(other.positions()).toEqual(new Map([[2, 9n]]));
});

test('routes of several partitions share a commit', async () => {
  const before = commits();
  const next = 1n;
  await Promise.all([0, 1, 2, 3, 4, 5].map((n) => table.advance([route(`topic${n}`)], { partition: n, next })));
  expect(commits()).toBe(before + 1);
  expect([...table.positions().keys()]).toEqual([0, 1, 2, 3, 4, 5]);
});

test('changes that may wait share a commit, and one that may not commits them all at once', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  await table.apply(route('first'));
  const before = commits();
  const waiting: Promise<void>[] = [];
  for (let n = 0; n < 3; n++) {
    waiting.push(table.apply(route(`waiting${n}`), true));
    await nextTurn();
  }
  expect(commits()).toBe(before);
  vi.advanceTimersByTime(10);
  await Promise.all(waiting);
  expect(commits()).toBe(before + 1);
  const another = table.apply(route('another'), true);
  await nextTurn();
  await table.apply(route('last'));
  await another;
  expect(commits()).toBe(before + 2);
  for (const shortCode of ['waiting1', 'another', 'last']) expect(table.code(shortCode)).toBeDefined();
});

test('a position whose routes could not be written is not written with later ones', async () => {
  const broken = route('broken');
  Object.assign(broken.entry.value ?? {}, { hostname: undefined });
  await expect(table.advance([route('good'), broken], { partition: 0, next: 2n })).rejects.toThrow(TypeError);
  await table.advance([route('later')], { partition: 1, next: 5n });
  expect(table.positions()).toEqual(new Map([[1, 5n]]));
});

test('a host of any length can be looked up', () => {
  expect(table.customDomain('x'.repeat(16_000))).toBeUndefined();
});

test('a process that is suspended while it writes keeps no other writer from its other work', async () => {
  const start = (program: string) => {
    const child = fork(join(import.meta.dirname, program), [folder], { execArgv: [] });
    onTestFinished(() => void child.kill('SIGKILL'));
    return child;
  };
  const suspended = start('route-writer.fixture.ts');
  await once(suspended, 'message');
  const other = start('occasional-writer.fixture.ts');
  await once(other, 'message');
  const said = new Set<unknown>();
  other.on('message', (message) => said.add(message));
  const says = (message: string) => expect.poll(() => said.has(message), { timeout: 5_000 }).toBe(true);
  // It is in the middle of a transaction most of the time.
  for (let round = 1; round <= 10; round++) {
    suspended.kill('SIGSTOP');
    other.send(round);
    await says(`going on ${round}`);
    suspended.kill('SIGCONT');
    await says(`written ${round}`);
  }
});

test('a change that the disk does not take is served from memory until the table has it or a newer one', async () => {
  const unwritten: [string, Buffer][] = [];
  const [first, second] = [folder, folder].map((path) =>
    openRouteTable(path, logger, (...code) => void unwritten.push(code)),
  ) as [RouteTable, RouteTable];
  onTestFinished(async () => {
    await first.close();
    await second.close();
  });
  const targets = async () => {
    await nextTurn();
    return [first, second].map((each) => each.code('abcdefg')?.targetUrl);
  };
  await first.apply(code(1n, 'https://one.example'));
  const full = vi.spyOn(ReservedSpace.prototype, 'ensure').mockImplementation(() => {
    throw new Error('ENOSPC');
  });
  onTestFinished(() => full.mockRestore());
  await first.apply(code(3n, 'https://three.example'));
  await first.apply(code(2n, 'https://two.example'));
  expect(await targets()).toEqual(['https://three.example', 'https://one.example']);
  for (const [shortCode, record] of unwritten) second.serveUnwritten(shortCode, record);
  expect(await targets()).toEqual(['https://three.example', 'https://three.example']);
  // It is looked up in Postgres.
  await first.apply(route('another'));
  expect(first.code('another')).toBeUndefined();

  full.mockRestore();
  await second.apply(code(4n, 'https://four.example'));
  expect(await targets()).toEqual(['https://four.example', 'https://four.example']);
});
