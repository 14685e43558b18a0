import { Webhook } from 'standardwebhooks';
import { Agent } from 'undici';
import { afterAll, expect, test } from 'vitest';
import { freePort } from '../../local/free-port.ts';
import { attempt } from './attempt.ts';
import { unguardedConnect } from './guarded-connect.ts';
import { ACCEPT, type Answering, HANG, startReceiver } from './receiver.fixture.ts';
import { newSecret } from './signature.ts';

const agent = new Agent({ connect: unguardedConnect(), connections: null });
afterAll(() => agent.destroy());
const secrets = [newSecret(), newSecret()];
const body = JSON.stringify({ type: 'qr.created', timestamp: '2026-11-20T09:30:00.000Z', data: { name: 'schön €' } });

function send(url: string, { stop = new AbortController().signal, timeoutMs = 5_000 } = {}) {
  return attempt(agent, { url, secrets, id: 'evt_1', body }, { stop, timeoutMs });
}

async function sendTo(answer: Answering, options?: Parameters<typeof send>[1]) {
  const receiver = await startReceiver(answer);
  return { receiver, outcome: await send(`${receiver.url}/hook?x=1`, options) };
}

test('posts exactly the body, which verifies with either secret by the package of Standard Webhooks', async () => {
  const { receiver, outcome } = await sendTo(ACCEPT);
  expect(outcome).toMatchObject({ status: 204, response: '' });
  const [got] = receiver.received;
  if (!got) throw new Error('nothing came');
  expect(got).toMatchObject({ path: '/hook?x=1', id: 'evt_1', body });
  expect(got.headers['content-type']).toBe('application/json');
  for (const secret of secrets) {
    expect(new Webhook(secret).verify(got.body, got.headers as Record<string, string>)).toEqual(JSON.parse(body));
  }
  expect(() => new Webhook(newSecret()).verify(got.body, got.headers as Record<string, string>)).toThrow();
});

test('keeps the status and the first KiB of the answer', async () => {
  const text = `{"error":"nul \0"}${'é'.repeat(3_000)}`;
  const { outcome } = await sendTo((_, response) => void response.writeHead(500).end(text));
  expect(outcome?.status).toBe(500);
  expect(outcome?.response.startsWith('{"error":"nul \ufffd"}éé')).toBe(true);
  expect(Buffer.byteLength(outcome?.response ?? '')).toBeLessThan(1_030);
});

test('reads no more of an endless answer than it has to', async () => {
  let written = 0;
  const { outcome, receiver } = await sendTo((_, response) => {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536, 'x'))) written += 65_536;
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  });
  expect(outcome).toMatchObject({ status: 200, response: 'x'.repeat(1_024) });
  expect(written).toBeLessThan(64 * 1024 * 1024);
  expect(receiver.received).toHaveLength(1);
});

test('uses connections again after short answers', async () => {
  const receiver = await startReceiver((_, response) => void response.writeHead(200).end('x'.repeat(5_000)));
  for (let turn = 0; turn < 20; turn++) expect((await send(receiver.url))?.status).toBe(200);
  // A request that follows at once may find the connection not yet free.
  expect(receiver.connections()).toBeLessThanOrEqual(3);
});

test('does not follow redirects', async () => {
  const elsewhere = await startReceiver();
  const { outcome } = await sendTo((_, response) => void response.writeHead(307, { location: elsewhere.url }).end());
  expect(outcome?.status).toBe(307);
  expect(elsewhere.received).toEqual([]);
});

test('an endpoint that accepts the request and is silent has failed after the time', async () => {
  const { outcome } = await sendTo(HANG, { timeoutMs: 200 });
  expect(outcome).toMatchObject({ status: null, response: 'No answer came in time.' });
  expect(outcome?.latencyMs).toBeGreaterThanOrEqual(199);
});

test('an endpoint that answers 2xx and then drips has succeeded, with what came in time', async () => {
  const { outcome } = await sendTo((_, response) => void response.writeHead(200).write('so far'), { timeoutMs: 300 });
  expect(outcome).toMatchObject({ status: 200, response: 'so far' });
});

test.each([
  ['nobody listens', async () => `http://127.0.0.1:${await freePort()}`, 'The connection was refused.'],
  [
    'the connection is closed without an answer',
    async () => (await startReceiver((_, { socket }) => void socket?.destroy())).url,
    'The connection was closed without an answer.',
  ],
  ['the name leads nowhere', async () => 'http://nowhere.invalid/', 'The name leads to no address.'],
  ['it is no TLS', async () => (await startReceiver()).url.replace('http:', 'https:'), 'The request failed'],
])('%s: a sentence, with nothing of our network in it', async (_, url, sentence) => {
  const outcome = await send(await url());
  expect(outcome?.status).toBeNull();
  expect(outcome?.response.startsWith(sentence)).toBe(true);
  expect(outcome?.response).not.toContain('127.0.0.1');
});

test('of one that is stopped before its answer, nothing is known', async () => {
  const stopping = new AbortController();
  const { outcome } = await sendTo(() => stopping.abort(), { stop: stopping.signal });
  expect(outcome).toBeUndefined();
});
