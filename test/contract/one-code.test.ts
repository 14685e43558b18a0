import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { contract, type One, TARGET } from './client.ts';

const api = contract();

const UNKNOWN = 'qr_01kagcpn9te5gvjxq1rmm30w4h';

describe('a missing code', () => {
  test.each([
    ['GET', '', undefined],
    ['PATCH', '', { name: 'x' }],
    ['DELETE', '', undefined],
    ['GET', '/analytics', undefined],
    ['GET', '/image', undefined],
  ])(
    '404: %s /api/v1/qr-codes/{id}%s of an unknown code, another account’s, or a deleted one',
    async (method, path, json) => {
      const [account, other] = [await api.account(), await api.account()];
      const { id: foreign } = await other.create();
      const { id: deleted } = await account.create();
      await account.call('DELETE', `/qr-codes/${deleted}`);
      for (const id of [UNKNOWN, foreign, deleted, 'nonsense', '%00', 'x'.repeat(500), '..%2f..']) {
        const { status, body } = await account.call(method, `/qr-codes/${id}${path}`, json && { json });
        expect([id, status]).toEqual([id, 404]);
        expect(body).toEqual({ error: 'There is no such code on this account.' });
      }
    },
  );
});

describe('PATCH /api/v1/qr-codes/{id}', () => {
  test('only the fields sent change', async () => {
    const account = await api.account();
    const before = await account.create({ name: 'a', folder: 'Berlin', tags: ['x'], campaign_type: 'print' });
    const target_url = 'https://example.org/winter';
    const { status, body } = await account.call<One>('PATCH', `/qr-codes/${before.id}`, { json: { target_url } });
    expect(status).toBe(200);
    expect(body).toEqual({
      success: true,
      data: { ...before, target_url, version: 2, updated_at: body.data.updated_at },
    });
    expect(body.data.updated_at > before.updated_at).toBe(true);
    expect((await account.call<One>('GET', `/qr-codes/${before.id}`)).body).toEqual(body);
  });

  test('`paused` true pauses, false resumes', async () => {
    const account = await api.account();
    const { id } = await account.create();
    const paused = await account.call<One>('PATCH', `/qr-codes/${id}`, { json: { paused: true } });
    expect(paused.body.data.paused).toBe(true);
    const resumed = await account.call<One>('PATCH', `/qr-codes/${id}`, { json: { paused: false } });
    expect(resumed.body.data.paused).toBe(false);
  });

  test('null removes the name and unfiles the code; `[]` removes all tags; an unknown folder is created', async () => {
    const account = await api.account();
    const { id } = await account.create({ name: 'a', folder: 'Berlin', tags: ['x', 'y'] });
    const change = async (json: object) => (await account.call<One>('PATCH', `/qr-codes/${id}`, { json })).body.data;
    expect(await change({ name: null })).toMatchObject({ name: null, folder: { name: 'Berlin' }, tags: ['x', 'y'] });
    expect(await change({ folder: null })).toMatchObject({ folder: null, tags: ['x', 'y'] });
    expect(await change({ tags: ['z', 'x'] })).toMatchObject({ tags: ['x', 'z'] });
    expect(await change({ tags: [] })).toMatchObject({ tags: [] });
    expect(await change({ folder: 'Hamburg' })).toMatchObject({ folder: { name: 'Hamburg' } });
  });

  test('a change that changes nothing is a 200, leaves the code unchanged and emits nothing', async () => {
    const account = await api.account();
    const code = await account.create({ name: 'a', folder: 'Berlin', tags: ['x', 'y'] });
    const same = { target_url: ` ${TARGET} `, name: 'a', paused: false, folder: 'BERLIN', tags: ['Y', 'x', 'X'] };
    for (const json of [{ name: 'a' }, same, { tags: ['y', 'x'], unknown: 1 }]) {
      const { status, body } = await account.call<One>('PATCH', `/qr-codes/${code.id}`, { json });
      expect(status).toBe(200);
      expect(body.data).toEqual(code);
    }
    // Events arrive in the order of changes, so this one would not be the only one if there were others.
    await account.call('PATCH', `/qr-codes/${code.id}`, { json: { name: 'b' } });
    const client = new pg.Client({ connectionString: api.signpost.databaseUrl });
    await client.connect();
    const types = () =>
      client
        .query<{ type: string; topic: string }>(
          `select topic, headers ->> 'ce_type' as type from log_records where key in ($1, $2) order by topic, "offset"`,
          [code.id, `code:${code.short_code}`],
        )
        .then(({ rows }) => rows.map(({ topic, type }) => type ?? topic));
    await expect.poll(types).toEqual(['qr.created', 'qr.updated', 'signpost.routes.v1', 'signpost.routes.v1']);
    await client.end();
  });

  test.each([
    ['no recognised field', {}],
    ['no recognised field', { nme: 'a', target: TARGET, campaign_type: 'print', design: {} }],
    ['target_url is null', { target_url: null }],
    ['target_url is no URL', { target_url: 'example.com' }],
    ['name is a number', { name: 5 }],
    ['paused is a string', { paused: 'true' }],
    ['paused is null', { paused: null }],
    ['folder is an array', { folder: [] }],
    ['folder breaks the rule for names', { folder: 'none' }],
    ['folder is an id of no folder', { folder: 'folder_01kagcpn8me3vs6t7k5sfm2s9p' }],
    ['tags has an id of no tag', { tags: ['x', 'tag_01kagcpn9jfbxsg8m2yq3v7d0c'] }],
    ['tags is null', { tags: null }],
    ['tags has a number', { tags: [1] }],
    ['more than 20 tags', { tags: Array.from({ length: 21 }, (_, index) => `tag ${index}`) }],
    ['one of two fields is wrong', { name: 'b', paused: 1 }],
  ])('400: %s, and nothing changes', async (_what, json) => {
    const account = await api.account();
    const code = await account.create({ name: 'a', folder: 'Berlin', tags: ['x'] });
    const { status, body } = await account.call('PATCH', `/qr-codes/${code.id}`, { json });
    expect(status).toBe(400);
    expect(Object.keys(body)).toEqual(['error']);
    expect((await account.call<One>('GET', `/qr-codes/${code.id}`)).body.data).toEqual(code);
  });

  test('400 comes before 404', async () => {
    const account = await api.account();
    expect((await account.call('PATCH', `/qr-codes/${UNKNOWN}`, { json: {} })).status).toBe(400);
    expect((await account.call('PATCH', `/qr-codes/${UNKNOWN}`, { json: { target_url: 'x' } })).status).toBe(400);
    expect((await account.call('PATCH', `/qr-codes/${UNKNOWN}`, { json: { name: 'a\0' } })).status).toBe(400);
    expect((await account.call('PATCH', `/qr-codes/${UNKNOWN}`, { json: { name: 'x' } })).status).toBe(404);
  });
});

describe('DELETE /api/v1/qr-codes/{id}', () => {
  test('200 with the id; a second time 404', async () => {
    const account = await api.account();
    const { id } = await account.create();
    const { status, body } = await account.call<unknown>('DELETE', `/qr-codes/${id}`);
    expect(status).toBe(200);
    expect(body).toEqual({ success: true, data: { id, deleted: true } });
    expect((await account.call('DELETE', `/qr-codes/${id}`)).status).toBe(404);
  });

  test('any body is ignored', async () => {
    const account = await api.account();
    const { id } = await account.create();
    const { status } = await account.call('DELETE', `/qr-codes/${id}`, {
      raw: '{',
      headers: { 'content-type': 'application/json' },
    });
    expect(status).toBe(200);
  });
});
