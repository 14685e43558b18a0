import { beforeAll, describe, expect, test } from 'vitest';
import { AccountsService, Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { type Account, contract, type One, TARGET } from './client.ts';
import { internal } from './internal.ts';

const api = contract();

const TOO_LARGE = 'x'.repeat(1024 * 1024 + 1);
const BAD_KEY = { 'idempotency-key': 'k'.repeat(256) };

const accounts = (account: Account) => internal(api.signpost, AccountsService, account.id);
const post = (account: Account, raw: string, headers: Record<string, string> = {}) =>
  account.call('POST', '/qr-codes', { raw, headers });

describe('the order of checks', () => {
  test('plan 403, burst 429, quota 429, 413, idempotency-key 400, body 400, limit 403', async () => {
    const account = await api.account({ overrides: { monthlyQuota: 126n, codeLimit: 0n } });
    const { call, apiKey } = account;
    const outcome = async (raw: string, headers: Record<string, string> = {}) => {
      const { status, body } = await post(account, raw, headers);
      return [status, body.code ?? body.error.split(/[ :.]/, 1)[0]];
    };
    const good = JSON.stringify({ target_url: TARGET });
    expect(await outcome(good)).toEqual([403, 'qr_limit_reached']);
    expect(await outcome('{"target_url":"x"}')).toEqual([400, 'target_url']);
    expect(await outcome('{"target_url":5}')).toEqual([400, 'target_url']);
    expect(await outcome('{"target_url":5}', BAD_KEY)).toEqual([400, 'Idempotency-Key']);
    expect(await outcome(TOO_LARGE, BAD_KEY)).toEqual([413, 'The']);
    await accounts(account).updateAccount({ overrides: { monthlyQuota: 5n, codeLimit: 0n } });
    expect((await post(account, TOO_LARGE, BAD_KEY)).status).toBe(429);
    await accounts(account).updateAccount({ overrides: { monthlyQuota: 120n, codeLimit: 0n } });
    await Promise.all(Array.from({ length: 115 }, () => call('GET', '/tags')));
    const both = await post(account, TOO_LARGE, BAD_KEY);
    expect([both.status, both.headers.has('retry-after')]).toEqual([429, true]);
    await accounts(account).updateAccount({ plan: Plan.FREE });
    expect(await outcome(TOO_LARGE, BAD_KEY)).toEqual([403, 'business_plan_required']);
    const unknown = { authorization: `Bearer ${apiKey.slice(0, -1)}${apiKey.endsWith('a') ? 'b' : 'a'}` };
    expect((await post(account, TOO_LARGE, { ...BAD_KEY, ...unknown })).status).toBe(401);
  });

  test('PATCH evaluates 400, then 404, then 409', async () => {
    const account = await api.account();
    const { id } = await account.create();
    await account.call('DELETE', `/qr-codes/${id}`);
    const patch = (json: object) => account.call('PATCH', `/qr-codes/${id}`, { json });
    expect((await patch({ target_url: 'x' })).status).toBe(400);
    expect((await patch({ target_url: TARGET, folder: 'none' })).status).toBe(400);
    expect((await patch({ target_url: TARGET })).status).toBe(404);
  });

  test('a batch that costs more than the quota that is left is a 429, before any 413 or 400, and costs nothing', async () => {
    const account = await api.account({ overrides: { monthlyQuota: 2n } });
    const rows = (count: number) => Array.from({ length: count }, () => ({ target_url: TARGET }));
    for (const headers of [{}, { 'idempotency-key': 'costly' }, BAD_KEY]) {
      for (const json of [
        { rows: rows(201), design: { foregroundColor: 'red' } },
        { rows: rows(201), domain_id: 'domain_01kagcpn9te5gvjxq1rmm30w4h' },
        { rows: rows(201), name: 5 },
        { rows: rows(25_001) },
      ]) {
        const answer = await account.call('POST', '/batches', { json, headers });
        const remaining = answer.headers.get('x-ratelimit-remaining');
        expect([answer.status, answer.body.error, remaining]).toEqual([429, expect.stringMatching(/2 of the 2/), '2']);
      }
    }
    const { status } = await account.call('POST', '/batches', { json: { rows: rows(200), name: 5 } });
    expect(status).toBe(400);
    const { headers } = await account.call('POST', '/batches', {
      json: { rows: [], design: { foregroundColor: 'red' } },
    });
    expect(headers.get('x-ratelimit-remaining')).toBe('0');
  });

  test('a batch: 413, then 400, then 403 `batch_limit_exceeded`, then 403 `qr_limit_reached`', async () => {
    const account = await api.account({ overrides: { batchLimit: 1, codeLimit: 0n } });
    const row = { target_url: TARGET };
    const outcome = async (json: object) => {
      const { status, body } = await account.call('POST', '/batches', { json });
      return [status, body.code];
    };
    const domain_id = 'domain_01kagcpn9te5gvjxq1rmm30w4h';
    const many = Array.from({ length: 25_001 }, () => ({}));
    expect(await outcome({ rows: many, domain_id, name: 5 })).toEqual([413, undefined]);
    expect(await outcome({ rows: [row, row], domain_id })).toEqual([400, undefined]);
    expect(await outcome({ rows: [row, row], name: 5 })).toEqual([400, undefined]);
    expect(await outcome({ rows: [row, row], name: 'a\0' })).toEqual([400, undefined]);
    expect(await outcome({ rows: [row, row], design: { foregroundColor: 'red' } })).toEqual([400, undefined]);
    expect(await outcome({ rows: [row, row] })).toEqual([403, 'batch_limit_exceeded']);
    expect(await outcome({ rows: [row] })).toEqual([403, 'qr_limit_reached']);
  });
});

describe('an account that has lost its plan', () => {
  let account: Account;
  let id: string;
  beforeAll(async () => {
    account = await api.account();
    ({ id } = await account.create({ name: 'a', folder: 'Berlin', tags: ['x'] }));
    await accounts(account).updateAccount({ plan: Plan.FREE });
  });

  test.each([
    ['GET', '/qr-codes'],
    ['POST', '/qr-codes'],
    ['GET', '/qr-codes/{id}/image'],
    ['GET', '/batches'],
    ['POST', '/batches'],
    ['GET', '/batches/batch_01kagcpn9te5gvjxq1rmm30w4h'],
  ])('403 `business_plan_required`: %s %s', async (method, path) => {
    const { status, body } = await account.call(
      method,
      path.replace('{id}', id),
      method === 'POST' ? { raw: '{' } : {},
    );
    expect([status, body.code]).toEqual([403, 'business_plan_required']);
  });

  test('can still read, repoint, pause, label and delete the codes it has printed', async () => {
    const patch = async (json: object) => {
      const { status, body } = await account.call<One>('PATCH', `/qr-codes/${id}`, { json });
      expect(status).toBe(200);
      return body.data;
    };
    for (const path of [`/qr-codes/${id}`, `/qr-codes/${id}/analytics`, '/folders', '/tags', '/openapi']) {
      const { status, headers } = await account.call<unknown>('GET', path);
      expect([path, status, headers.get('x-ratelimit-limit')]).toEqual([path, 200, '1000']);
    }
    const target_url = 'https://example.org/winter';
    const { short_code } = await patch({ target_url });
    expect((await api.call('GET', `/r/${short_code}`)).headers.get('location')).toBe(target_url);
    expect(await patch({ paused: true, tags: ['y'], folder: 'Wien' })).toMatchObject({ paused: true, tags: ['y'] });
    expect((await account.call('DELETE', `/qr-codes/${id}`)).status).toBe(200);
    expect((await api.call('GET', `/r/${short_code}`)).status).toBe(410);
  });

  test('has everything again as soon as it has a plan again', async () => {
    await accounts(account).updateAccount({ plan: Plan.SCALE });
    const { status, headers } = await account.call('GET', '/qr-codes');
    expect([status, headers.get('x-ratelimit-limit')]).toEqual([200, '250000']);
  });
});
