import { setTimeout as sleep } from 'node:timers/promises';
import { createContextValues } from '@connectrpc/connect';
import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { type BackgroundWork, type FollowedWork, requestWindow, workStreams } from './progress.ts';

const CONNECTIONS = 8;

/** Returns a function that starts a request, with an idempotency key or without. `read`: the work as it is by now. */
function window(
  read: () => BackgroundWork = () => ({ position: 1 }),
  { windowMs = 60_000, timeoutMs = Number.POSITIVE_INFINITY, isOpen = (): boolean => true } = {},
) {
  const { wait, closes } = requestWindow({
    windowMs,
    connections: CONNECTIONS,
    logger: pino({ level: 'silent' }),
    stopping: new AbortController().signal,
  });
  return (headers: Record<string, string>, signal = new AbortController().signal) =>
    wait(
      { position: 0 },
      { read: async () => read(), isOpen: async () => isOpen() },
      closes({ timeoutMs: () => timeoutMs }),
      { requestHeader: new Headers(headers), signal, values: createContextValues() },
    );
}

const KEYED = { 'idempotency-key': 'a' };

/** Whether it is answered a moment later. */
function isAnswered(request: Promise<BackgroundWork>): Promise<boolean> {
  return Promise.race([request.then(() => true), sleep(50).then(() => false)]);
}

test('requests wait until their work is completed', async () => {
  let work: BackgroundWork = { position: 1 };
  const waiting = window(() => work)({});
  expect(await isAnswered(waiting)).toBe(false);
  work = { position: 2, completedAt: new Date() };
  expect(await waiting).toBe(work);
});

test('with a key a quarter of the connections wait, in all as many as connections, and further ones are answered', async () => {
  const request = window();
  const { signal, abort } = abortable();
  const waiting = [request(KEYED, signal), request(KEYED, signal)];
  expect(await isAnswered(request(KEYED))).toBe(true);
  while (waiting.length < CONNECTIONS) waiting.push(request({}, signal));
  expect(await isAnswered(request({}))).toBe(true);
  expect(await Promise.all(waiting.map(isAnswered))).not.toContain(true);
  abort();
  await Promise.all(waiting);
});

test('a request waits no longer than its window, also if the clock is set back meanwhile', async () => {
  const waiting = window(undefined, { windowMs: 200 })({});
  const now = Date.now();
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now - 3_600_000);
  await vi.waitFor(() => waiting, { timeout: 5_000 }).finally(() => clock.mockRestore());
});

test('a request stops waiting a second before its deadline', async () => {
  const before = window(undefined, { timeoutMs: 1_200 })({});
  expect(await isAnswered(before)).toBe(false);
  expect(await before).toEqual({ position: 1 });
  expect(await window(undefined, { timeoutMs: 900 })({})).toEqual({ position: 0 });
});

test('a request does not wait for work that never continues because its account was closed', async () => {
  let open = true;
  const waiting = window(() => ({ position: 3 }), { isOpen: () => open })({});
  expect(await isAnswered(waiting)).toBe(false);
  open = false;
  expect(await waiting).toEqual({ position: 3 });
});

test('requests whose callers have left make room', async () => {
  const request = window();
  const [left, end] = [abortable(), abortable()];
  const leaving = [request(KEYED, left.signal), request(KEYED, left.signal)];
  left.abort();
  await Promise.all(leaving);
  const waiting = request(KEYED, end.signal);
  expect(await isAnswered(waiting)).toBe(false);
  end.abort();
  await waiting;
});

test('a stream of work that ends before the work is completed says why, unless its caller has left', async () => {
  const never = new AbortController().signal;
  const watched = async ({
    call = never,
    stopping = never,
    ...part
  }: Partial<FollowedWork<BackgroundWork>> & Signals) => {
    const work = { read: async () => ({ position: 1 }), isOpen: async () => true, ...part };
    const seen: BackgroundWork[] = [];
    try {
      for await (const each of workStreams(stopping)('a', work, call)) seen.push(each);
    } catch (error) {
      return [seen.length, readFailure(error).reason];
    }
    return [seen.length];
  };
  expect(await watched({ stopping: AbortSignal.timeout(50) })).toEqual([1, 'STOPPING']);
  expect(await watched({ isOpen: async () => false })).toEqual([1, 'NOT_FOUND']);
  expect(await watched({ call: AbortSignal.timeout(50) })).toEqual([1]);
  expect(await watched({ read: async () => ({ position: 1, completedAt: new Date() }) })).toEqual([1]);
});

test('an account has 50 open streams of work at a time; one that ended, failed or was left makes room', async () => {
  const watch = workStreams(new AbortController().signal);
  const work = { read: async (): Promise<BackgroundWork> => ({ position: 1 }), isOpen: async () => true };
  const begin = async (accountId: string, signal = new AbortController().signal, followed = work) => {
    const stream = watch(accountId, followed, signal);
    await stream.next();
    return stream;
  };
  const refusal = () =>
    begin('a').then(
      () => 'open',
      (error) => readFailure(error),
    );
  const full = {
    reason: 'UNAVAILABLE',
    message: 'Too many streams of this account are open. Close some, or try again.',
    details: { limit: '50' },
  };
  const [left, failing] = [abortable(), { ...work, isOpen: () => Promise.reject(new Error('away')) }];
  const leaving = await begin('a', left.signal);
  const failed = await begin('a', undefined, failing);
  const open = await Promise.all(Array.from({ length: 48 }, () => begin('a')));
  expect(await refusal()).toMatchObject(full);
  await begin('b');

  left.abort();
  await leaving.next();
  await expect(failed.next()).rejects.toThrow('away');
  await open[0]?.return(undefined);
  for (let n = 0; n < 3; n++) expect(await refusal()).toBe('open');
  expect(await refusal()).toMatchObject(full);
});

interface Signals {
  call?: AbortSignal;
  stopping?: AbortSignal;
}

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
