import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeId } from '../../common/contract/ids.ts';
import { AccountsService, Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { type Account, contract, type Failure, type One, TARGET } from './client.ts';
import { internal } from './internal.ts';

const api = contract('file');

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

  test('requests without a key are not deduplicated and report no replays', async () => {
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
      expect([headers.get('idempotent-replay'), headers.get('retry-after')]).toEqual(['false', null]);
    }
    expect((await post(account, key)).status).toBe(201);
    expect(await total(account)).toBe(1);
  });

  test('of concurrent requests with one key, one creates and the others are in flight or replays', async () => {
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

  test.each([
    ['a code', '/qr-codes', { target_url: TARGET }],
    ['a code with labels', '/qr-codes', { target_url: TARGET, folder: 'F', tags: ['t'] }],
    ['a batch', '/batches', { rows: [{ target_url: TARGET }] }],
    ['an error', '/qr-codes', { target_url: 'ftp://example.com' }],
  ])('concurrent requests with the key of a completed one all replay it: %s', async (_what, path, json) => {
    const account = await api.account();
    const again = () => account.call('POST', path, { json, headers: { 'idempotency-key': 'a' } });
    const { status, body } = await again();
    for (const answer of await Promise.all(Array.from({ length: 20 }, again))) {
      expect([answer.status, answer.headers.get('idempotent-replay')]).toEqual([status, 'true']);
      expect(answer.body).toEqual(body);
    }
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
    ['a NUL in JSON', '{"target_url":\0}', 400],
    ['a wrong type', '{"target_url":5}', 400],
    ['a bad target', '{"target_url":"ftp://example.com"}', 400],
    ['a name that is too long', JSON.stringify({ target_url: TARGET, name: 'n'.repeat(201) }), 400],
  ])('an error is stored and replayed too: %s', async (_what, raw, expected) => {
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

  test('a 403 for the QR code limit is replayed, even once there is room', async () => {
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

  test('a 413 whose body was not read is not stored: a retry with a smaller body runs', async () => {
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
  ])('400: a key with %s, before any error in the body, and not stored', async (_what, key) => {
    const account = await api.account();
    for (const json of [{ target_url: TARGET }, { target_url: 5 }, { target_url: TARGET, name: 'n'.repeat(201) }, []]) {
      const { status, body } = await post<Failure>(account, key, json);
      expect(status).toBe(400);
      expect(body.error).toMatch(/^Idempotency-Key/);
    }
    expect(await total(account)).toBe(0);
  });

  test('a key may have 255 visible ASCII characters', async () => {
    const account = await api.account();
    const key = Array.from({ length: 255 }, (_, index) => String.fromCharCode(0x21 + (index % 94))).join('');
    expect((await post(account, key)).status).toBe(201);
    expect((await post(account, key)).headers.get('idempotent-replay')).toBe('true');
  });

  test('endpoints without keys ignore one', async () => {
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

describe('stored answers', () => {
  const accounts = (account: Account) => internal(api.signpost, AccountsService, account.id);

  test('a different endpoint counts as a different body', async () => {
    const account = await api.account();
    const headers = { 'idempotency-key': newKey() };
    const json = { target_url: TARGET, rows: [row()] };
    expect((await account.call('POST', '/qr-codes', { json, headers })).status).toBe(201);
    expect((await account.call('POST', '/batches', { json, headers })).status).toBe(409);
  });

  test('too many rows are a 413 that is replayed', async () => {
    const account = await api.account();
    const request = {
      json: { rows: Array.from({ length: 25_001 }, () => 0) },
      headers: { 'idempotency-key': newKey() },
    };
    const [first, again] = [
      await account.call('POST', '/batches', request),
      await account.call('POST', '/batches', request),
    ];
    expect([first.status, again.status]).toEqual([413, 413]);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get('idempotent-replay')).toBe('true');
  });

  test('a 429 is not stored: a retry with quota runs', async () => {
    const account = await api.account({ overrides: { monthlyQuota: 1n } });
    const json = { rows: Array.from({ length: 101 }, row) };
    const batch = () => account.call('POST', '/batches', { json, headers: { 'idempotency-key': 'batch' } });
    const code = () => post<Failure>(account, 'code');
    // The first is admitted but exceeds the quota, the last is not even admitted.
    expect((await batch()).status).toBe(429);
    expect((await account.call('GET', '/tags')).status).toBe(200);
    expect((await code()).status).toBe(429);
    await accounts(account).updateAccount({ overrides: { monthlyQuota: 100n } });
    for (const retry of [batch, code]) {
      const { status, headers } = await retry();
      expect([status, headers.get('idempotent-replay')]).toEqual([201, 'false']);
    }
  });

  test('a plan 403 is not stored: a retry with the plan runs', async () => {
    const account = await api.account({ plan: Plan.FREE });
    const key = newKey();
    expect((await post(account, key)).status).toBe(403);
    await accounts(account).updateAccount({ plan: Plan.BUSINESS });
    expect((await post(account, key)).status).toBe(201);
  });

  test('a replay is complete, warnings included, as it was then', async () => {
    const account = await api.account();
    const json = { target_url: TARGET, folder: 'none', tags: [''] };
    const key = newKey();
    const first = await post<One & { warnings: string[] }>(account, key, json);
    expect(first.body.warnings).toHaveLength(2);
    await account.call('PATCH', `/qr-codes/${first.body.data.id}`, { json: { name: 'later', paused: true } });
    expect((await post(account, key, json)).body).toEqual(first.body);
    await account.call('DELETE', `/qr-codes/${first.body.data.id}`);
    expect((await post(account, key, json)).body).toEqual(first.body);
  });
});

test('over RPC, a fingerprint that was sent with another method is a reused key', async () => {
  const account = await api.account();
  const call = async (method: string, message: object) => {
    const response = await fetch(`http://127.0.0.1:${api.signpost.corePort}/signpost.${method}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${account.apiKey}`,
        'content-type': 'application/json',
        'idempotency-key': 'one',
        'idempotency-fingerprint': 'AAAA',
      },
      body: JSON.stringify(message),
    });
    return [response.status, ((await response.json()) as { message?: string }).message];
  };
  const create = { targetUrl: TARGET };
  expect(await call('codes.v1.CodesService/CreateCode', create)).toEqual([200, undefined]);
  const reused = [409, 'This Idempotency-Key was used with a different request.'];
  expect(await call('batches.v1.BatchesService/CreateBatch', { rows: [create] })).toEqual(reused);
  const method = 'signpost.codes.v1.CodesService/CreateCode';
  const refused = { method, reason: 'INVALID_FIELD', message: 'x' };
  expect(await call('access.v1.AdmissionService/Refuse', refused)).toEqual(reused);
  expect(await call('codes.v1.CodesService/CreateCode', create)).toEqual([200, undefined]);
});

describe('a key', () => {
  let pool: pg.Pool;
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: api.signpost.databaseUrl });
  });
  afterAll(() => pool.end());
  const uuid = ({ id }: Account) => decodeId('acct', id);

  test('expires 24 hours after its first use, and not before', async () => {
    const account = await api.account();
    const key = newKey();
    const first = await post(account, key);
    const age = (interval: string) =>
      pool.query('update idempotency set created_at = now() - $2::interval where account_id = $1', [
        uuid(account),
        interval,
      ]);
    await age('23 hours 59 minutes');
    expect((await post(account, key)).body).toEqual(first.body);
    await age('24 hours');
    const anew = await post(account, key, { target_url: `${TARGET}-2` });
    expect([anew.status, anew.headers.get('idempotent-replay')]).toEqual([201, 'false']);
    expect((await post(account, key)).status).toBe(409);
    expect(await total(account)).toBe(2);
  });

  /** Blocks creates of the account until `free` is called. */
  async function blocked(account: Account) {
    const client = await pool.connect();
    await client.query('begin');
    await client.query('select from code_counts where account_id = $1 for update', [uuid(account)]);
    return {
      async untilWaiting() {
        const waiting = `select from pg_locks where not granted`;
        while ((await pool.query(waiting)).rowCount === 0) await sleep(10);
      },
      async free() {
        await client.query('rollback');
        client.release();
      },
    };
  }

  test('409 with `Retry-After` while its request is in flight, whatever the body; then it replays', async () => {
    const account = await api.account();
    const key = newKey();
    const block = await blocked(account);
    const first = post(account, key);
    await block.untilWaiting();
    for (const json of [row(), row(), { target_url: 'https://example.com/other' }]) {
      const { status, headers, body } = await post<Failure>(account, key, json);
      const answered = [status, headers.get('idempotent-replay'), headers.get('retry-after')];
      expect(answered).toEqual([409, 'false', '1']);
      expect(body.error).toMatch(/still running/);
    }
    await block.free();
    expect((await first).status).toBe(201);
    expect((await post(account, key)).headers.get('idempotent-replay')).toBe('true');
    expect(await total(account)).toBe(1);
  });

  test('is usable again when the core dies during its request', async () => {
    const account = await api.account();
    const key = newKey();
    const block = await blocked(account);
    const first = post<Failure>(account, key);
    await block.untilWaiting();
    await api.signpost.cores[0]?.restart();
    expect((await first).status).toBe(503);
    await block.free();
    let retried = await post(account, key);
    while (retried.status === 503) {
      await sleep(50);
      retried = await post(account, key);
    }
    expect([retried.status, retried.headers.get('idempotent-replay')]).toEqual([201, 'false']);
    expect(await total(account)).toBe(1);
  });
});

const row = () => ({ target_url: TARGET });
