import { describe, expect, test } from 'vitest';
import { policyOf } from '../../common/targets/policy.fixture.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { TargetsService } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { type Account, contract, type Page } from './client.ts';
import { internal } from './internal.ts';

const api = contract();

async function some(count: number, account: Account): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index++) ids.unshift((await account.create({ name: `code ${index}` })).id);
  return ids;
}

async function page(account: Account, query = ''): Promise<Page> {
  const { status, body } = await account.call<Page>('GET', `/qr-codes${query}`);
  expect(status).toBe(200);
  return body;
}

const ids = ({ data }: Page) => data.map(({ id }) => id);

describe('GET /api/v1/qr-codes', () => {
  test('lists the account’s own codes, newest first, excluding deleted ones', async () => {
    const [account, other] = [await api.account(), await api.account()];
    const [third = '', second = '', first = ''] = await some(3, account);
    await some(1, other);
    await account.call('DELETE', `/qr-codes/${second}`);
    const listed = await page(account);
    expect(ids(listed)).toEqual([third, first]);
    expect(listed).toMatchObject({
      success: true,
      pagination: { limit: 25, offset: 0, next_cursor: null },
      total: 2,
    });
  });

  test('paging by cursor returns every code once, even while codes are created, and null ends it', async () => {
    const account = await api.account();
    const expected = await some(5, account);
    const seen: string[] = [];
    const totals: number[] = [];
    let query = '?limit=2';
    for (;;) {
      const { data, pagination, total } = await page(account, query);
      seen.push(...data.map(({ id }) => id));
      totals.push(total);
      if (pagination.next_cursor === null) break;
      await account.create();
      query = `?limit=2&cursor=${pagination.next_cursor}`;
    }
    expect(seen).toEqual(expected);
    expect(totals).toEqual([5, 3, 1]);
  });

  test('offset skips codes and is ignored when a cursor is sent', async () => {
    const account = await api.account();
    const all = await some(4, account);
    const second = await page(account, '?limit=2&offset=2');
    expect(ids(second)).toEqual(all.slice(2));
    expect(second.pagination).toEqual({ limit: 2, offset: 2, next_cursor: null });
    const { pagination } = await page(account, '?limit=1');
    const rest = await page(account, `?limit=2&offset=3&cursor=${pagination.next_cursor}`);
    expect(ids(rest)).toEqual(all.slice(1, 3));
    expect(rest.pagination.offset).toBeNull();
  });

  test.each([
    ['limit=1000', { limit: 100 }],
    ['limit=99999999999999999999', { limit: 100 }],
    ['limit=0', { limit: 1 }],
    ['limit=-5', { limit: 1 }],
    ['limit=abc', { limit: 25 }],
    ['limit=2.5', { limit: 25 }],
    ['limit=', { limit: 25 }],
    ['limit=7&limit=9', { limit: 7 }],
    ['offset=-3', { offset: 0 }],
    ['offset=x', { offset: 0 }],
    ['offset=99999999999999999999', {}],
    ['a%ZZ=1&&=&limit', { limit: 25 }],
  ])('numbers never fail a request: %s', async (query, pagination) => {
    const account = await api.account();
    await account.create();
    expect((await page(account, `?${query}`)).pagination).toMatchObject(pagination);
  });

  test('400: a cursor that the service did not issue to this account', async () => {
    const [account, other] = [await api.account(), await api.account()];
    await some(2, other);
    const { pagination } = await page(other, '?limit=1');
    expect(pagination.next_cursor).not.toBeNull();
    for (const cursor of [
      pagination.next_cursor,
      'abc',
      '',
      `${pagination.next_cursor}x`,
      `${pagination.next_cursor}!`,
    ]) {
      const { status, body } = await account.call('GET', `/qr-codes?cursor=${cursor}`);
      expect(status).toBe(400);
      expect(body.error).toMatch(/cursor/i);
    }
  });

  test('folder filters by id or name, `none` returns the unfiled codes, an unknown one is a 400', async () => {
    const account = await api.account();
    const filed = await account.create({ folder: 'Berlin' });
    const unfiled = await account.create();
    expect(ids(await page(account, '?folder=berlin'))).toEqual([filed.id]);
    expect(ids(await page(account, `?folder=${filed.folder?.id}`))).toEqual([filed.id]);
    expect(ids(await page(account, '?folder=None'))).toEqual([unfiled.id]);
    const { status, body } = await account.call('GET', '/qr-codes?folder=Hamburg');
    expect(status).toBe(400);
    expect(body.error).toMatch(/folder/i);
  });

  test('tag is repeatable and comma-separated and matches codes with any of them; an unknown one matches none', async () => {
    const account = await api.account();
    const menu = await account.create({ tags: ['menu'] });
    const both = await account.create({ tags: ['menu', 'summer'] });
    const summer = await account.create({ tags: ['summer'] });
    const winter = await account.create({ tags: ['winter'] });
    expect(ids(await page(account, '?tag=MENU'))).toEqual([both.id, menu.id]);
    expect(ids(await page(account, '?tag=menu,%20summer'))).toEqual([summer.id, both.id, menu.id]);
    expect(ids(await page(account, '?tag=menu&tag=winter,nope'))).toEqual([winter.id, both.id, menu.id]);
    const unknown = ['nope', '', '%00', ',', 'tag_01kagcpn9te5gvjxq1rmm30w4h'];
    for (const tag of unknown) expect(await page(account, `?tag=${tag}`)).toMatchObject({ data: [], total: 0 });
  });

  test('any number of tags is taken', async () => {
    const { apiKey } = await api.account();
    // SDKs encode commas, and three times as long a request would be too long.
    const response = await fetch(`${api.signpost.url}/api/v1/qr-codes?tag=${','.repeat(10_001)}`, {
      headers: { authorization: `Bearer ${apiKey}` },
    });
    expect([response.status, await response.json()]).toEqual([200, expect.objectContaining({ data: [], total: 0 })]);
  });

  test('a tag whose name contains a comma is found by it', async () => {
    const account = await api.account();
    const { id } = await account.create({ tags: ['Food, Drinks'] });
    await account.create({ tags: ['Coffee'] });
    expect(ids(await page(account, '?tag=food,%20drinks'))).toEqual([id]);
  });
});

test('filters combine and hold while paging by cursor, where `total` counts what is left', async () => {
  const account = await api.account();
  const wanted: string[] = [];
  for (let round = 0; round < 3; round++) {
    wanted.unshift((await account.create({ folder: 'Berlin', tags: ['menu', 'x'] })).id);
    wanted.unshift((await account.create({ folder: 'Berlin', tags: ['summer'] })).id);
    await account.create({ folder: 'Berlin' });
    await account.create({ folder: 'Wien', tags: ['menu'] });
    await account.create({ tags: ['menu'] });
  }
  const filter = 'limit=4&folder=berlin&tag=menu,summer&tag=x';
  const first = await page(account, `?${filter}`);
  expect([ids(first), first.total]).toEqual([wanted.slice(0, 4), 6]);
  const second = await page(account, `?${filter}&cursor=${first.pagination.next_cursor}`);
  expect([ids(second), second.total, second.pagination.next_cursor]).toEqual([wanted.slice(4), 2, null]);
  const unfiled = await page(account, '?folder=none&tag=menu');
  expect([unfiled.data.length, unfiled.total]).toEqual([3, 3]);
});

test('`total` counts codes as they are created, deleted and restored, whatever its type', async () => {
  const account = await api.account();
  const codes = internal(api.signpost, CodesService, account.id);
  const total = async () => (await page(account)).total;
  const first = await account.create();
  await codes.createStaticCode({ content: { case: 'payload', value: 'x' } });
  const landing = await codes.createLandingPageCode({ landingPage: { title: 'Menu' } });
  expect(await total()).toBe(3);
  const rows = Array.from({ length: 4 }, () => ({ target_url: 'https://example.com' }));
  await account.call('POST', '/batches', { json: { rows } });
  expect(await total()).toBe(7);
  for (const id of [first.id, landing.code?.id, first.id]) await account.call('DELETE', `/qr-codes/${id}`);
  expect(await total()).toBe(5);
  for (const id of [first.id, landing.code?.id ?? '', first.id]) await codes.restoreCode({ id });
  expect(await total()).toBe(7);
});

test('a page of 100 codes is listed whatever their size: with the longest targets, policies and labels', async () => {
  const account = await api.account();
  const targets = internal(api.signpost, TargetsService, account.id);
  const long = (prefix: string, length: number) => prefix + '😀'.repeat(length - prefix.length);
  const code = {
    target_url: long('https://example.com/', 2_048),
    name: long('', 200),
    campaign_type: long('', 64),
    folder: long('', 100),
    tags: Array.from({ length: 20 }, (_, tag) => long(`${tag}`, 100)),
  };
  const variants = Array.from({ length: 10 }, (_, label) => ({
    label: `${label}`,
    weight: 1,
    target_url: 'https://example.com/'.padEnd(1_940, 'x'),
  }));
  const policy = policyOf({ rules: Array.from({ length: 3 }, () => ({ then: { split: variants } })) });
  for (let created = 0; created < 100; created++) {
    const { id } = await account.create(code);
    await targets.setTarget({ id, policy });
  }
  expect((await page(account, '?limit=100')).data).toHaveLength(100);
}, 120_000);
