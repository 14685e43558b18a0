import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { contract, type Failure, type One, TARGET } from './client.ts';

const api = contract('file');

describe('POST /api/v1/qr-codes', () => {
  test('201: creates a dynamic code and answers with all of its fields', async () => {
    const account = await api.account();
    const { status, body } = await account.call<One>('POST', '/qr-codes', {
      json: { target_url: TARGET, name: 'Table 4', campaign_type: 'print', folder: 'Berlin', tags: ['summer', 'menu'] },
    });
    expect(status).toBe(201);
    const { id, short_code, folder, created_at } = body.data;
    expect(body).toEqual({
      success: true,
      data: {
        id: expect.stringMatching(/^qr_[0-9a-hjkmnp-tv-z]{26}$/),
        type: 'dynamic',
        short_code: expect.stringMatching(/^[1-9A-HJ-NP-Za-km-z]{7}$/),
        scan_url: `${api.signpost.url}/r/${short_code}`,
        target_url: TARGET,
        name: 'Table 4',
        paused: false,
        folder: { id: expect.stringMatching(/^folder_/), name: 'Berlin' },
        tags: ['menu', 'summer'],
        scan_count: 0,
        campaign_type: 'print',
        domain_id: null,
        design: { foregroundColor: '#000000', backgroundColor: '#ffffff' },
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        version: 1,
        updated_at: created_at,
      },
    });
    expect(folder).not.toBeNull();
    const read = await account.call<One>('GET', `/qr-codes/${id}`);
    expect(read.body).toEqual(body);
  });

  test('a target is stored as sent, trimmed', async () => {
    const account = await api.account();
    expect(
      (await account.create({ target_url: '  HTTP://Example.com/%7Ea b'.replace(' b', '%20b\n') })).target_url,
    ).toBe('HTTP://Example.com/%7Ea%20b');
  });

  test.each([
    ['missing', {}],
    ['empty', { target_url: '' }],
    ['no URL', { target_url: 'not a url' }],
    ['relative', { target_url: '/menu' }],
    ['neither http nor https', { target_url: 'ftp://example.com/' }],
    ['a script', { target_url: 'javascript:alert(1)' }],
    ['with credentials', { target_url: 'https://user:secret@example.com/' }],
    ['longer than 2,048 characters', { target_url: `https://example.com/${'a'.repeat(2_029)}` }],
    ['null', { target_url: null }],
    ['a number', { target_url: 5 }],
    ['an object', { target_url: { href: TARGET } }],
  ])('400: a target that is %s', async (_what, json) => {
    const account = await api.account();
    const { status, body } = await account.call('POST', '/qr-codes', { json });
    expect(status).toBe(400);
    expect(Object.keys(body)).toEqual(['error']);
    expect(body.error).toMatch(/^target_url: /);
  });

  test('a target may have 2,048 characters', async () => {
    const account = await api.account();
    const target = `https://example.com/${'a'.repeat(2_028)}`;
    expect((await account.create({ target_url: target })).target_url).toBe(target);
  });

  test('400: a target that is a scan URL of this platform, which would loop', async () => {
    const account = await api.account();
    const { scan_url } = await account.create();
    const { status } = await account.call('POST', '/qr-codes', { json: { target_url: scan_url } });
    expect(status).toBe(400);
  });

  test.each([
    ['name', 5],
    ['campaign_type', true],
    ['domain_id', {}],
    ['folder', 7],
    ['tags', 'menu'],
    ['tags', ['menu', 5]],
  ])('400: %s is %j, and the sentence names the field', async (field, value) => {
    const account = await api.account();
    const { status, body } = await account.call('POST', '/qr-codes', { json: { target_url: TARGET, [field]: value } });
    expect(status).toBe(400);
    expect(body.error).toMatch(new RegExp(`^${field}: `));
  });

  test('400: a name of more than 200 or a campaign type of more than 64 characters', async () => {
    const account = await api.account();
    const send = (fields: object) => account.call('POST', '/qr-codes', { json: { target_url: TARGET, ...fields } });
    expect((await send({ name: 'n'.repeat(201) })).status).toBe(400);
    expect((await send({ campaign_type: 'c'.repeat(65) })).status).toBe(400);
    expect((await send({ name: '🦊'.repeat(200), campaign_type: 'c'.repeat(64) })).status).toBe(201);
  });

  test('null stands for absent in every optional field, and `Location` leads to the code', async () => {
    const account = await api.account();
    const json = { target_url: TARGET, name: null, campaign_type: null, domain_id: null, folder: null, tags: null };
    const { status, headers, body } = await account.call<One>('POST', '/qr-codes', { json });
    expect(status).toBe(201);
    expect(body.data).toMatchObject({ name: null, campaign_type: null, domain_id: null, folder: null, tags: [] });
    expect(headers.get('location')).toBe(`/api/v1/qr-codes/${body.data.id}`);
    const rows = [{ ...json, external_ref: null }];
    const batch = await account.call<{ data: { counts: object } }>('POST', '/batches', { json: { rows } });
    expect(batch.body.data.counts).toMatchObject({ created: 1 });
  });

  test('an empty name becomes null, and a null folder means none', async () => {
    const account = await api.account();
    expect(await account.create({ name: '', folder: null })).toMatchObject({ name: null, folder: null });
  });

  test.each([
    ['name', '\ud800', 'must be well-formed Unicode.'],
    ['tags', ['ok', 'a\udc00'], 'must be well-formed Unicode.'],
    ['tags', ['\ud800', 5], 'must be an array of strings or null.'],
    ['tags', 'ok', 'must be an array of strings or null.'],
  ])('400: %s of %j, which is no text or of the wrong type', async (field, value, problem) => {
    const account = await api.account();
    const json = { target_url: TARGET, [field]: value };
    const { status, body } = await account.call('POST', '/qr-codes', { json });
    expect([status, body.error]).toEqual([400, `${field}: ${problem}`]);
  });

  test('unknown fields are ignored', async () => {
    const account = await api.account();
    const code = await account.create({
      id: 'qr_mine',
      type: 'static',
      targetUrl: 'https://evil.example',
      paused: true,
    });
    expect(code).toMatchObject({ type: 'dynamic', target_url: TARGET, paused: false });
    expect(code.id).not.toBe('qr_mine');
  });

  test.each([
    ['a domain that is not the account’s', 'domain_01kagcpn8me3vs6t7k5sfm2s9p'],
    ['no id of a domain', 'example.com'],
  ])('400: %s', async (_what, domain_id) => {
    const account = await api.account();
    const { status, body } = await account.call('POST', '/qr-codes', { json: { target_url: TARGET, domain_id } });
    expect(status).toBe(400);
    expect(body.error).not.toBe('');
  });

  test('a folder is found by id, by name case-insensitively, or created; the first spelling is kept', async () => {
    const account = await api.account();
    const first = await account.create({ folder: ' Berlin ' });
    expect(first.folder?.name).toBe('Berlin');
    expect((await account.create({ folder: 'BERLIN' })).folder).toEqual(first.folder);
    expect((await account.create({ folder: first.folder?.id })).folder).toEqual(first.folder);
    expect((await account.create({ folder: ` ${first.folder?.id}\t` })).folder).toEqual(first.folder);
  });

  test.each([
    ['none', 'NONE'],
    ['an empty name', '   '],
    ['a name of 101 characters', 'f'.repeat(101)],
    ['an id of no folder', 'folder_01kagcpn8me3vs6t7k5sfm2s9p'],
  ])('a folder problem loses the label but not the code: %s', async (_what, folder) => {
    const account = await api.account();
    const { status, body } = await account.call<One & { warnings?: string[] }>('POST', '/qr-codes', {
      json: { target_url: TARGET, folder },
    });
    expect(status).toBe(201);
    expect(body.data.folder).toBeNull();
    expect(body.warnings).toEqual([expect.stringMatching(/folder/)]);
  });

  test('an invalid tag costs the label but not the code; a reason is given once', async () => {
    const account = await api.account();
    const { status, body } = await account.call<One & { warnings?: string[] }>('POST', '/qr-codes', {
      json: {
        target_url: TARGET,
        tags: ['ok', ' ', '\u200b\u2060', 't'.repeat(101), 'a\nb', 'nul\0', 'tag_01kagcpn9jfbxsg8m2yq3v7d0c'],
      },
    });
    expect(status).toBe(201);
    expect(body.data.tags).toEqual(['ok']);
    const reasons = [
      "a name can't be empty.",
      'a name has at most 100 characters.',
      'a name has no control characters.',
      'no tag of this account has this id.',
    ];
    expect(body.warnings).toEqual(reasons.map((reason) => `tags: ${reason}`));
    expect((await account.call<One>('GET', `/qr-codes/${body.data.id}`)).body).toEqual({
      success: true,
      data: body.data,
    });
  });

  test('a target, a name or a campaign type with a NUL is a 400, before the limit’s 403', async () => {
    const account = await api.account({ overrides: { codeLimit: 0n } });
    for (const fields of [
      { target_url: `${TARGET}\0` },
      { name: 'a\0' },
      { campaign_type: '\0' },
      { domain_id: '\0' },
    ]) {
      const json = { target_url: TARGET, folder: 'Berlin', ...fields };
      const [field] = Object.keys(fields);
      for (const headers of [{}, { 'idempotency-key': `nul-in-${field}` }]) {
        const { status, body } = await account.call('POST', '/qr-codes', { json, headers });
        expect([status, body.error]).toEqual([400, expect.stringMatching(`^${field}: `)]);
      }
    }
    expect((await account.call<{ data: unknown[] }>('GET', '/folders')).body.data).toEqual([]);
  });

  test('tags are found by id, by name case-insensitively, or created; the first spelling is kept', async () => {
    const account = await api.account();
    await account.create({ tags: [' Menu '] });
    const { body } = await account.call<{ data: { id: string }[] }>('GET', '/tags');
    expect((await account.create({ tags: ['MENU', body.data[0]?.id, 'new'] })).tags).toEqual(['Menu', 'new']);
    expect((await account.call<{ data: unknown[] }>('GET', '/tags')).body.data).toHaveLength(2);
  });

  test('tags are in one alphabetical order when a code is created, replayed, read, changed and listed', async () => {
    const account = await api.account();
    const unordered = ['🥰', 'b', '🫶', 'A', 'a\u200db', 'ab', 'ä', '😀', 'B\u0301', 'z', '10', '9'];
    const json = { target_url: TARGET, tags: unordered };
    const headers = { 'idempotency-key': 'ordered' };
    const { tags, id } = (await account.call<One>('POST', '/qr-codes', { json, headers })).body.data;
    expect(tags.slice(3)).toEqual(['10', '9', 'A', 'ä', 'ab', 'a\u200db', 'b', 'B\u0301', 'z']);
    const replayed = await account.call<One>('POST', '/qr-codes', { json, headers });
    const read = await account.call<One>('GET', `/qr-codes/${id}`);
    const listed = await account.call<{ data: One['data'][] }>('GET', '/qr-codes');
    const changed = await account.call<One>('PATCH', `/qr-codes/${id}`, { json: { name: 'x' } });
    const relabelled = await account.call<One>('PATCH', `/qr-codes/${id}`, { json: { tags: unordered.toReversed() } });
    for (const { body } of [replayed, read, changed, relabelled]) expect(body.data.tags).toEqual(tags);
    expect(listed.body.data.map((code) => code.tags)).toEqual([tags]);
  });

  test('tags are counted once whether they are given by name or id', async () => {
    const account = await api.account();
    const names = Array.from({ length: 20 }, (_, index) => `tag ${index}`);
    await account.create({ tags: names });
    const listed = (await account.call<{ data: { id: string; name: string }[] }>('GET', '/tags')).body.data;
    const ids = listed.map(({ id }) => id);
    const mixed = [...ids.slice(10), ...listed.slice(0, 10).map(({ name }) => name)];
    expect((await account.create({ tags: mixed })).tags).toHaveLength(20);
    const code = await account.create({ tags: [...ids, ...names, 'TAG 1 '] });
    expect(code.tags).toHaveLength(20);
    const send = (method: string, path: string, tags: string[]) =>
      account.call(method, path, { json: { target_url: TARGET, tags } });
    for (const tags of [
      [...ids, 'another'],
      [...mixed, 'another'],
    ]) {
      const error = 'tags: a code can have at most 20 tags.';
      expect(await send('POST', '/qr-codes', tags)).toMatchObject({ status: 400, body: { error } });
      expect(await send('PATCH', `/qr-codes/${code.id}`, tags)).toMatchObject({ status: 400, body: { error } });
    }
    expect((await account.call<{ data: unknown[] }>('GET', '/tags')).body.data).toHaveLength(20);
    const rows = [{ target_url: TARGET, tags: [...mixed, 'another'] }];
    const { body } = await account.call<{ data: { id: string } }>('POST', '/batches', { json: { rows } });
    const batch = await account.call<{ data: { rows: unknown[] } }>('GET', `/batches/${body.data.id}`);
    const warnings = ['tags: a code can have at most 20 tags. The others are not applied.'];
    expect(batch.body.data.rows).toMatchObject([{ status: 'created', warnings }]);
  });

  test('any number of tags is judged like 21: repeated ones count once, and the error is remembered for its key', async () => {
    const account = await api.account();
    const send = (method: string, path: string, tags: string[], headers: Record<string, string> = {}) =>
      account.call<One & Failure>(method, path, { json: { target_url: TARGET, tags }, headers });
    const repeated = new Array<string>(10_001).fill('menu');
    const created = await send('POST', '/qr-codes', repeated);
    expect([created.status, created.body.data.tags]).toEqual([201, ['menu']]);
    const changed = await send('PATCH', `/qr-codes/${created.body.data.id}`, [...repeated, 'summer']);
    expect([changed.status, changed.body.data.tags]).toEqual([200, ['menu', 'summer']]);
    const distinct = Array.from({ length: 10_001 }, (_, index) => `${index}`);
    const key = { 'idempotency-key': 'many' };
    const rejected = await send('POST', '/qr-codes', distinct, key);
    expect(rejected).toMatchObject({ status: 400, body: { error: 'tags: a code can have at most 20 tags.' } });
    expect(rejected.headers.get('x-ratelimit-limit')).toBe('50000');
    expect((await send('POST', '/qr-codes', distinct, key)).headers.get('idempotent-replay')).toBe('true');
    expect((await send('POST', '/qr-codes', ['menu'], key)).status).toBe(409);
  });

  test('no number of spellings of one tag hides the others', async () => {
    const account = await api.account();
    const spellings = Array.from(
      { length: 1_500 },
      (_, n) => `${' '.repeat(n % 50)}t${' '.repeat(Math.floor(n / 50))}`,
    );
    const cases = Array.from({ length: 1_500 }, (_, n) =>
      [...'tttttttttttt'].map((letter, bit) => ((n >> bit) & 1 ? 'T' : letter)).join(''),
    );
    const { id } = await account.create({ tags: [...spellings, ...cases, 'zzz'] });
    expect((await account.call<One>('GET', `/qr-codes/${id}`)).body.data.tags).toEqual(['t', 'tttttttttttt', 'zzz']);
    for (const more of [1, 18, 25]) {
      const json = { tags: [...spellings, ...cases, ...Array.from({ length: more }, (_, index) => `tag ${index}`)] };
      const { status, body } = await account.call<One & Failure>('PATCH', `/qr-codes/${id}`, { json });
      if (more <= 18) expect([status, body.data.tags]).toEqual([200, expect.objectContaining({ length: more + 2 })]);
      else expect([status, body.error]).toEqual([400, 'tags: a code can have at most 20 tags.']);
    }
  });

  test('at most 20 tags; duplicates count once', async () => {
    const account = await api.account();
    const tags = Array.from({ length: 20 }, (_, index) => `tag ${String(index).padStart(2, '0')}`);
    expect((await account.create({ tags: [...tags, 'TAG 00', tags[1]] })).tags).toEqual(tags);
    const { status, body } = await account.call('POST', '/qr-codes', {
      json: { target_url: TARGET, tags: [...tags, 'one more'] },
    });
    expect(status).toBe(400);
    expect(body.error).toMatch(/tags/);
  });

  test('an invalid tag is none of the 20', async () => {
    const account = await api.account();
    const tags = Array.from({ length: 20 }, (_, index) => `tag ${String(index).padStart(2, '0')}`);
    const { status, body } = await account.call<One & { warnings?: string[] }>('POST', '/qr-codes', {
      json: { target_url: TARGET, tags: ['', ...tags, 't'.repeat(101)] },
    });
    expect([status, body.data.tags, body.warnings?.length]).toEqual([201, tags, 2]);
  });

  test('403 with `limit` and `used` once the plan’s QR code limit is reached', async () => {
    const account = await api.account({ overrides: { codeLimit: 2n } });
    await account.create();
    const { id } = await account.create();
    const { status, body } = await account.call('POST', '/qr-codes', { json: { target_url: TARGET } });
    expect(status).toBe(403);
    expect(body).toEqual({ error: expect.any(String), code: 'qr_limit_reached', limit: 2, used: 2 });
    await account.call('DELETE', `/qr-codes/${id}`);
    await account.create();
  });

  test('the QR code limit is exact under concurrency', async () => {
    const account = await api.account({ overrides: { codeLimit: 5n } });
    const answers = await Promise.all(
      Array.from({ length: 15 }, () => account.call('POST', '/qr-codes', { json: { target_url: TARGET } })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(10);
  });

  test('503 with `Retry-After` after 5 collisions, and the retry with the same key runs', async () => {
    const account = await api.account();
    const { short_code } = await account.create();
    const client = new pg.Client({ connectionString: api.signpost.databaseUrl });
    await client.connect();
    try {
      // Every drawn short code is already in use.
      await client.query(`
        create sequence drawn;
        create function taken() returns trigger language plpgsql as
          $$ begin perform nextval('drawn'); new.short_code := '${short_code}'; return new; end $$;
        create trigger taken before insert on codes for each row execute function taken()`);
      const request = { json: { target_url: TARGET, folder: 'x' }, headers: { 'idempotency-key': 'one' } };
      const { status, headers, body } = await account.call('POST', '/qr-codes', request);
      expect(status).toBe(503);
      expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect(Object.keys(body)).toEqual(['error']);
      expect((await client.query(`select last_value::integer as draws from drawn`)).rows).toEqual([{ draws: 5 }]);
      expect((await account.call<{ data: unknown[] }>('GET', '/folders')).body.data).toEqual([]);
      await client.query('drop trigger taken on codes');
      expect((await account.call('POST', '/qr-codes', request)).status).toBe(201);
    } finally {
      await client.query('drop trigger if exists taken on codes');
      await client.end();
    }
  });

  test.each([
    ['cut off', '{"target_url":', 'is not valid JSON: unexpected end at line 1, column 15'],
    ['empty', '', 'is not valid JSON: unexpected end at line 1, column 1'],
    [
      'with a bare word',
      '{\n  "target_url": nothing\n}',
      "is not valid JSON: unexpected token 'o' at line 2, column 18",
    ],
    ['with another quote', "{\n'a': 1}", "is not valid JSON: expected property name or '}' at line 2, column 1"],
    [
      'with a comma too many',
      '{"a": 1,}',
      'is not valid JSON: expected double-quoted property name at line 1, column 9',
    ],
    ['an array', '[]', 'must be a JSON object'],
    ['a string', '"https://example.com"', 'must be a JSON object'],
    ['null', 'null', 'must be a JSON object'],
    [
      'no UTF-8',
      new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
      'is not valid UTF-8: the byte at offset 2 is wrong',
    ],
    ['compressed', new Uint8Array(gzipSync('{}')), 'is compressed with gzip; send the JSON itself'],
    ['UTF-16', new Uint8Array(Buffer.from('\ufeff{}', 'utf16le')), 'is not valid UTF-8: the byte at offset 0 is wrong'],
  ])('400: a body that is %s', async (_what, raw, problem) => {
    const account = await api.account();
    const { status, body } = await account.call<Failure>('POST', '/qr-codes', { raw });
    expect(status).toBe(400);
    expect(body).toEqual({ error: `The body ${problem}.` });
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'nonsense', 'multipart/form-data; boundary='])(
    'a body is parsed as JSON whatever its Content-Type: %s',
    async (type) => {
      const account = await api.account();
      const answer = await account.call('POST', '/qr-codes', {
        json: { target_url: TARGET },
        headers: { 'content-type': type },
      });
      expect(answer.status).toBe(201);
    },
  );
});
