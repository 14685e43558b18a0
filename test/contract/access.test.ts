import { describe, expect, test } from 'vitest';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { contract, TARGET } from './client.ts';

const api = contract();

const UNKNOWN = 'qr_01kagcpn9te5gvjxq1rmm30w4h';

/** Every endpoint, and whether the contract lists a 403 for it. */
const ENDPOINTS = [
  ['GET', '/qr-codes', true],
  ['POST', '/qr-codes', true],
  ['GET', `/qr-codes/${UNKNOWN}`, false],
  ['PATCH', `/qr-codes/${UNKNOWN}`, false],
  ['DELETE', `/qr-codes/${UNKNOWN}`, false],
  ['GET', `/qr-codes/${UNKNOWN}/analytics`, false],
  ['GET', `/qr-codes/${UNKNOWN}/image`, true],
  ['GET', '/batches', true],
  ['POST', '/batches', true],
  ['GET', '/batches/batch_01kagcpn9te5gvjxq1rmm30w4h', true],
  ['GET', '/folders', false],
  ['GET', '/tags', false],
  ['GET', '/openapi', false],
] as const;

/** Start of the next UTC month as Unix time. */
function nextMonth(): number {
  const now = new Date();
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) / 1_000;
}

describe('authentication', () => {
  test.each(ENDPOINTS)('401: %s %s with a missing or invalid key, whatever else is wrong', async (method, path) => {
    const { apiKey } = await api.account();
    for (const authorization of [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      `Basic ${apiKey}`,
      apiKey,
      `Bearer ${apiKey}x`,
      `Bearer sk_live_${'a'.repeat(43)}`,
      `Bearer ${apiKey} ${apiKey}`,
      'Bearer kéy',
    ]) {
      const { status, headers, body } = await api.call(method, `/api/v1${path}`, {
        ...(method === 'POST' || method === 'PATCH' ? { raw: '{"target_url":' } : {}),
        headers: authorization === undefined ? {} : { authorization },
      });
      expect([authorization, status]).toEqual([authorization, 401]);
      expect(headers.get('www-authenticate')).toBe('Bearer');
      expect(headers.has('x-ratelimit-limit')).toBe(false);
      expect(Object.keys(body)).toEqual(['error']);
    }
  });

  test('`Bearer` is matched case-insensitively', async () => {
    const { apiKey } = await api.account();
    for (const scheme of ['bearer', 'BEARER']) {
      const { status } = await api.call('GET', '/api/v1/tags', { headers: { authorization: `${scheme} ${apiKey}` } });
      expect(status).toBe(200);
    }
  });

  test('a 401 comes before a 413 and reveals nothing about the body', async () => {
    expect((await api.call('POST', '/api/v1/qr-codes', { raw: 'x'.repeat(2 * 1024 * 1024) })).status).toBe(401);
  });
});

describe('the plan', () => {
  test.each(ENDPOINTS)(
    '%s %s on a plan without API access: 403 is %s, costs nothing',
    async (method, path, checked) => {
      const account = await api.account({ plan: Plan.FREE });
      const { status, headers, body } = await account.call(
        method,
        path,
        method === 'PATCH' ? { json: { name: 'x' } } : {},
      );
      expect(headers.get('x-ratelimit-limit')).toBe('1000');
      expect(headers.get('x-ratelimit-remaining')).toBe(checked ? '1000' : '999');
      if (!checked) expect([200, 404]).toContain(status);
      else {
        expect(status).toBe(403);
        expect(body).toEqual({ error: expect.any(String), code: 'business_plan_required' });
      }
    },
  );

  test('403 with `error` alone when a feature is not in the plan', async () => {
    const account = await api.account({ overrides: { images: false, bulk: false } });
    const { id } = await account.create();
    for (const path of [`/qr-codes/${id}/image`, '/batches']) {
      const { status, body } = await account.call('GET', path);
      expect(status).toBe(403);
      expect(Object.keys(body)).toEqual(['error']);
    }
  });

  test('403 comes before 400 and 413', async () => {
    const account = await api.account({ plan: Plan.FREE });
    expect((await account.call('POST', '/qr-codes', { raw: '{' })).status).toBe(403);
    expect((await account.call('POST', '/qr-codes', { raw: 'x'.repeat(2 * 1024 * 1024) })).status).toBe(403);
    expect((await account.call('GET', '/qr-codes/x/image?format=gif')).status).toBe(403);
  });
});

describe('rate headers', () => {
  test('describe the month on every authenticated answer, errors too; a request costs 1 whatever its outcome', async () => {
    const account = await api.account();
    const { id } = await account.create();
    const requests = [
      ['GET', `/qr-codes/${id}`],
      ['GET', '/qr-codes/nope'],
      ['GET', `/qr-codes/${id}/image?format=gif`],
      ['POST', '/qr-codes'],
      ['PATCH', `/qr-codes/${id}`],
      ['GET', '/openapi'],
      ['HEAD', '/tags'],
    ] as const;
    let remaining = 49_999;
    for (const [method, path] of requests) {
      const { headers } = await account.call(method, path);
      remaining -= 1;
      expect(headers.get('x-ratelimit-limit')).toBe('50000');
      expect(headers.get('x-ratelimit-remaining')).toBe(String(remaining));
      expect(headers.get('x-ratelimit-reset')).toBe(String(nextMonth()));
    }
  });

  test('are `unlimited` on unlimited plans', async () => {
    const account = await api.account({ plan: Plan.ENTERPRISE });
    const { headers } = await account.call('GET', '/tags');
    expect(headers.get('x-ratelimit-limit')).toBe('unlimited');
    expect(headers.get('x-ratelimit-remaining')).toBe('unlimited');
    expect(headers.get('x-ratelimit-reset')).toBe(String(nextMonth()));
  });

  test('the quota 429 carries no `Retry-After`, costs nothing and creates nothing', async () => {
    const account = await api.account({ overrides: { monthlyQuota: 2n } });
    await account.create();
    await account.create();
    for (let attempt = 0; attempt < 2; attempt++) {
      const { status, headers, body } = await account.call('POST', '/qr-codes', { json: { target_url: TARGET } });
      expect(status).toBe(429);
      expect(headers.has('retry-after')).toBe(false);
      expect(headers.get('x-ratelimit-remaining')).toBe('0');
      expect(Object.keys(body)).toEqual(['error']);
    }
  });

  test('a batch that costs more than is left is a 429 that says so, costs nothing and stages nothing', async () => {
    const account = await api.account({ overrides: { monthlyQuota: 4n } });
    await account.call('GET', '/tags');
    const json = { rows: Array.from({ length: 301 }, () => ({ target_url: TARGET })) };
    for (let attempt = 0; attempt < 2; attempt++) {
      const { status, headers, body } = await account.call('POST', '/batches', { json });
      expect(status).toBe(429);
      const begins = new Date(nextMonth() * 1_000).toISOString().slice(0, 10);
      expect(body.error).toBe(
        `This call costs 4 requests, but 3 of the 4 requests of this month remain; the next month begins on ${begins}.`,
      );
      expect(headers.get('x-ratelimit-remaining')).toBe('3');
      expect(headers.has('retry-after')).toBe(false);
    }
    expect((await account.call<{ total: number }>('GET', '/batches')).body.total).toBe(0);
    const two = { rows: json.rows.slice(0, 200) };
    expect((await account.call('POST', '/batches', { json: two })).headers.get('x-ratelimit-remaining')).toBe('0');
  });

  test('a fresh key gets exactly 120 requests at once, then 429 with `Retry-After` in seconds, which costs nothing', async () => {
    const account = await api.account();
    const answers = await Promise.all(Array.from({ length: 150 }, () => account.call('GET', '/tags')));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(120);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(30);
    for (const { headers } of refused) expect(headers.get('retry-after')).toMatch(/^([1-9]|[1-5]\d|60)$/);
    const { headers } = await account.call('POST', '/qr-codes', { raw: '{' });
    expect(headers.get('x-ratelimit-remaining')).toBe(String(50_000 - 120));
  });

  test('429 comes before 400', async () => {
    const account = await api.account({ overrides: { monthlyQuota: 0n } });
    expect((await account.call('POST', '/qr-codes', { raw: '{' })).status).toBe(429);
  });
});
