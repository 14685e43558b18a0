import { expect, test } from 'vitest';
import { type Account, type Answer, contract, type Failure, type One, type Page, TARGET } from './client.ts';

/** Limits are exact across processes: every second request goes through another gateway to another core. */
const api = contract({ gateways: 2, cores: 2 });

function atOnce<Body>(count: number, send: (gateway: number) => Promise<Answer<Body>>): Promise<Answer<Body>[]> {
  return Promise.all(Array.from({ length: count }, (_, nth) => send(nth % 2)));
}

const withStatus = <Body>(answers: readonly Answer<Body>[], status: number) =>
  answers.filter((answer) => answer.status === status);

const create = (account: Account, gateway: number, headers: Record<string, string> = {}) =>
  account.call<One & Failure>('POST', '/qr-codes', { json: { target_url: TARGET }, headers, gateway });

const total = async (account: Account) => (await account.call<Page>('GET', '/qr-codes')).body.total;

test('of 150 concurrent requests exactly 120 are admitted, and only they cost', async () => {
  const account = await api.account();
  const answers = await atOnce(150, (gateway) => account.call('GET', '/tags', { gateway }));
  expect(withStatus(answers, 200)).toHaveLength(120);
  expect(withStatus(answers, 429)).toHaveLength(30);
  for (const { headers } of withStatus(answers, 429)) expect(headers.has('retry-after')).toBe(true);
  const remaining = answers.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')));
  expect(Math.min(...remaining)).toBe(50_000 - 120);
  // No figure occurs twice: each admitted request was counted separately.
  expect(new Set(withStatus(answers, 200).map(({ headers }) => headers.get('x-ratelimit-remaining'))).size).toBe(120);
});

test('of 60 concurrent requests with 23 left in the month exactly 23 are admitted', async () => {
  const account = await api.account({ overrides: { monthlyQuota: 23n } });
  const answers = await atOnce(60, (gateway) => create(account, gateway));
  expect(withStatus(answers, 201)).toHaveLength(23);
  expect(withStatus(answers, 429)).toHaveLength(37);
  for (const { headers } of withStatus(answers, 429)) expect(headers.has('retry-after')).toBe(false);
});

test('of 40 concurrent creates at a limit of 7 codes exactly 7 succeed', async () => {
  const account = await api.account({ overrides: { codeLimit: 7n } });
  const answers = await atOnce(40, (gateway) => create(account, gateway));
  expect(withStatus(answers, 201)).toHaveLength(7);
  const refused = withStatus(answers, 403);
  expect(refused).toHaveLength(33);
  for (const { body } of refused) expect(body).toMatchObject({ code: 'qr_limit_reached', limit: 7, used: 7 });
  expect(await total(account)).toBe(7);
});

test('slots freed by concurrent deletions are used once', async () => {
  const account = await api.account({ overrides: { codeLimit: 5n } });
  const codes = await Promise.all(Array.from({ length: 5 }, () => account.create()));
  const [deleted, created] = await Promise.all([
    // Each code is deleted twice, by both gateways, and frees one slot.
    Promise.all(
      codes
        .slice(0, 3)
        .flatMap(({ id }) => [0, 1].map((gateway) => account.call('DELETE', `/qr-codes/${id}`, { gateway }))),
    ),
    atOnce(30, (gateway) => create(account, gateway)),
  ]);
  expect(withStatus(deleted, 200)).toHaveLength(3);
  expect(withStatus(deleted, 404)).toHaveLength(3);
  const made = withStatus(created, 201).length;
  expect(made).toBeLessThanOrEqual(3);
  for (let left = 3 - made; left > 0; left--) await account.create();
  expect((await create(account, 1)).body).toMatchObject({ code: 'qr_limit_reached', limit: 5, used: 5 });
  expect(await total(account)).toBe(5);
});

test('20 concurrent requests with one idempotency key create one code; the others replay it or are in flight', async () => {
  const account = await api.account();
  const headers = { 'idempotency-key': 'one' };
  const answers = await atOnce(20, (gateway) => create(account, gateway, headers));
  const created = withStatus(answers, 201);
  expect(withStatus(answers, 409)).toHaveLength(20 - created.length);
  expect(new Set(created.map(({ body }) => body.data.id)).size).toBe(1);
  expect(created.filter((answer) => answer.headers.get('idempotent-replay') === 'false')).toHaveLength(1);
  expect(await total(account)).toBe(1);
  for (const gateway of [0, 1]) {
    const again = await create(account, gateway, headers);
    expect([again.status, again.headers.get('idempotent-replay')]).toEqual([201, 'true']);
    expect(again.body).toEqual(created[0]?.body);
  }
});

test('20 concurrent batches with one idempotency key create one batch', async () => {
  const account = await api.account();
  const rows = Array.from({ length: 30 }, (_, n) => ({ target_url: `https://example.com/${n}` }));
  const headers = { 'idempotency-key': 'one' };
  const answers = await atOnce(20, (gateway) =>
    account.call<One & Failure>('POST', '/batches', { json: { rows }, headers, gateway }),
  );
  const created = withStatus(answers, 201);
  expect(created.filter((answer) => answer.headers.get('idempotent-replay') === 'false')).toHaveLength(1);
  expect(withStatus(answers, 409)).toHaveLength(20 - created.length);
  expect(await total(account)).toBe(30);
});

test('concurrent batches never cost more than is left in the month', async () => {
  const account = await api.account({ overrides: { monthlyQuota: 20n, codeLimit: 10_000n } });
  const rows = Array.from({ length: 250 }, () => ({ target_url: TARGET }));
  const answers = await atOnce(10, (gateway) => account.call('POST', '/batches', { json: { rows }, gateway }));
  // Each costs 3; one rejected after its admission costs 1.
  const staged = withStatus(answers, 201).length;
  expect(staged).toBeGreaterThanOrEqual(5);
  expect(staged).toBeLessThanOrEqual(6);
  expect(withStatus(answers, 429)).toHaveLength(10 - staged);
  for (const { headers } of answers) expect(Number(headers.get('x-ratelimit-remaining'))).toBeGreaterThanOrEqual(0);
});

test('concurrent changes of a code by both gateways apply each or not at all', async () => {
  const account = await api.account();
  const { id } = await account.create({ name: 'before' });
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, nth) =>
      account.call('PATCH', `/qr-codes/${id}`, {
        json: nth % 2 ? { name: `name ${nth}` } : { tags: [`tag ${nth}`] },
        gateway: nth % 2,
      }),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  const { data } = (await account.call<One>('GET', `/qr-codes/${id}`, { gateway: 1 })).body;
  expect(data.name).toMatch(/^name \d+$/);
  expect(data.tags).toEqual([expect.stringMatching(/^tag \d+$/)]);
});
