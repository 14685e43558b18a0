import { describe, expect, test } from 'vitest';
import { type Account, contract, type Failure, type One, TARGET } from './client.ts';

const api = contract();

let keys = 0;
const newKey = () => `key-${++keys}`;

function post<Body = One>(account: Account, key: string, json: unknown = { target_url: TARGET }) {
  return account.call<Body>('POST', '/qr-codes', { json, headers: { 'idempotency-key': key } });
}

async function total(account: Account): Promise<number> {
  return (await account.call<{ total: number }>('GET', '/qr-codes')).body.total;
}

describe('Idempotency-Key', () => {
  test('the same key with the same body replays the original response with its status, and a replay costs 1', async () => {
    const account = await api.account();
    const key = newKey();
    const first = await post(account, key);
    const again = await post(account, key);
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.body).toEqual(first.body);
    expect(first.headers.get('idempotent-replay')).toBe('false');
    expect(again.headers.get('idempotent-replay')).toBe('true');
    expect(again.headers.get('x-ratelimit-remaining')).toBe('49998');
    expect(await total(account)).toBe(1);
  });

  test('requests without a key are not deduplicated and tell nothing of replays', async () => {
    const account = await api.account();
    const [one, other] = [await account.create(), await account.create()];
    expect(one.id).not.toBe(other.id);
    const { headers } = await account.call('POST', '/qr-codes', { json: { target_url: TARGET } });
    expect(headers.has('idempotent-replay')).toBe(false);
  });

  test('409: the same key with a different body, byte for byte', async () => {
    const account = await api.account();
    const key = newKey();
    await post(account, key);
    for (const raw of [`{"target_url":"${TARGET}2"}`, `{"target_url": "${TARGET}"}`, '{', '']) {
      const { status, body, headers } = await account.call<Failure>('POST', '/qr-codes', {
        raw,
        headers: { 'idempotency-key': key },
      });
      expect(status).toBe(409);
      expect(Object.keys(body)).toEqual(['error']);
      expect(headers.get('idempotent-replay')).toBe('false');
    }
    expect((await post(account, key)).status).toBe(201);
    expect(await total(account)).toBe(1);
  });

  test('of requests at the same time with one key, one creates and the others are in flight or replays', async () => {
    const account = await api.account();
    const key = newKey();
    const answers = await Promise.all(Array.from({ length: 12 }, () => post(account, key)));
    const created = answers.filter(({ status }) => status === 201);
    expect(created.length).toBeGreaterThanOrEqual(1);
    expect(new Set(created.map(({ body }) => body.data.id)).size).toBe(1);
    expect(created.filter(({ headers }) => headers.get('idempotent-replay') === 'false')).toHaveLength(1);
    for (const { status } of answers) expect([201, 409]).toContain(status);
    expect(await total(account)).toBe(1);
  });

  test('the scope is the account', async () => {
    const [one, other] = [await api.account(), await api.account()];
    const key = newKey();
    const [first, second] = [await post(one, key), await post(other, key)];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(first.body.data.id).not.toBe(second.body.data.id);
  });

  test.each([
    ['malformed JSON', '{', 400],
    ['a wrong type', '{"target_url":5}', 400],
    ['a bad target', '{"target_url":"ftp://example.com"}', 400],
    ['a name that is too long', JSON.stringify({ target_url: TARGET, name: 'n'.repeat(201) }), 400],
  ])('a refusal is remembered and replayed too: %s', async (_what, raw, expected) => {
    const account = await api.account();
    const headers = { 'idempotency-key': newKey() };
    const first = await account.call('POST', '/qr-codes', { raw, headers });
    const again = await account.call('POST', '/qr-codes', { raw, headers });
    expect([first.status, again.status]).toEqual([expected, expected]);
    expect(again.body).toEqual(first.body);
    expect(first.headers.get('idempotent-replay')).toBe('false');
    expect(again.headers.get('idempotent-replay')).toBe('true');
    expect((await account.call('POST', '/qr-codes', { raw: `${raw} `, headers })).status).toBe(409);
  });

  test('a 403 for the QR code limit is remembered, though there is room meanwhile', async () => {
    const account = await api.account({ overrides: { codeLimit: 1n } });
    const { id } = await account.create();
    const key = newKey();
    const first = await post<Failure>(account, key);
    expect(first.status).toBe(403);
    await account.call('DELETE', `/qr-codes/${id}`);
    const again = await post<Failure>(account, key);
    expect(again.status).toBe(403);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get('idempotent-replay')).toBe('true');
    expect((await post(account, newKey())).status).toBe(201);
  });

  test('a 413 whose body was not read is not remembered: a retry with a smaller body runs', async () => {
    const account = await api.account();
    const headers = { 'idempotency-key': newKey() };
    const large = await account.call('POST', '/qr-codes', { raw: 'x'.repeat(1024 * 1024 + 1), headers });
    expect(large.status).toBe(413);
    expect((await account.call('POST', '/qr-codes', { json: { target_url: TARGET }, headers })).status).toBe(201);
  });

  test.each([
    ['256 characters', 'k'.repeat(256)],
    ['10,000 characters', 'k'.repeat(10_000)],
    ['a space in it', 'a key'],
    ['no ASCII', 'schlüssel'],
    ['nothing in it', ''],
  ])('400: a key with %s, before anything that is wrong with the body, and not remembered', async (_what, key) => {
    const account = await api.account();
    for (const json of [{ target_url: TARGET }, { target_url: 5 }, { target_url: TARGET, name: 'n'.repeat(201) }, []]) {
      const { status, body } = await post<Failure>(account, key, json);
      expect(status).toBe(400);
      expect(body.error).toMatch(/^Idempotency-Key/);
    }
    expect(await total(account)).toBe(0);
  });

  test('255 visible ASCII characters are a key', async () => {
    const account = await api.account();
    const key = Array.from({ length: 255 }, (_, index) => String.fromCharCode(0x21 + (index % 94))).join('');
    expect((await post(account, key)).status).toBe(201);
    expect((await post(account, key)).headers.get('idempotent-replay')).toBe('true');
  });

  test('endpoints that take no key pay no attention to one', async () => {
    const account = await api.account();
    const { id } = await account.create();
    const headers = { 'idempotency-key': 'not a key' };
    const { status, headers: answered } = await account.call('PATCH', `/qr-codes/${id}`, {
      json: { name: 'x' },
      headers,
    });
    expect(status).toBe(200);
    expect(answered.has('idempotent-replay')).toBe(false);
  });
});
