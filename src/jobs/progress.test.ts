import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { requestWindow, type Work } from './progress.ts';

const CONNECTIONS = 8;

/** Returns a function that starts a request, with an idempotency key or without. `read`: the work as it is by now. */
function window(read: () => Work = () => ({ position: 1 })) {
  const { wait, closes } = requestWindow({
    windowMs: 60_000,
    connections: CONNECTIONS,
    logger: pino({ level: 'silent' }),
    stopping: new AbortController().signal,
  });
  return (headers: Record<string, string>, signal = new AbortController().signal) =>
    wait({ position: 0 }, async () => read(), closes(), { requestHeader: new Headers(headers), signal });
}

const KEYED = { 'idempotency-key': 'a' };

/** Whether it is answered a moment later. */
function isAnswered(request: Promise<Work>): Promise<boolean> {
  return Promise.race([request.then(() => true), sleep(50).then(() => false)]);
}

test('requests wait until their work is completed', async () => {
  let work: Work = { position: 1 };
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

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
