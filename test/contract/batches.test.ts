import pg from 'pg';
import { describe, expect, test } from 'vitest';
import type { BatchJson } from '../../common/contract/batch-json.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { type Account, contract, type Failure, type One, type Page } from './client.ts';
import { internal } from './internal.ts';

const api = contract('file');

interface RowJson {
  readonly index: number;
  readonly status: string;
  readonly target_url: string | null;
  readonly name: string | null;
  readonly external_ref: string | null;
  readonly id: string | null;
  readonly short_code: string | null;
  readonly scan_url: string | null;
  readonly reason: string | null;
  readonly warnings?: readonly string[];
}

interface Staged {
  readonly success: true;
  readonly data: BatchJson;
}

interface Read {
  readonly success: true;
  readonly data: BatchJson & { readonly rows: readonly RowJson[] };
  readonly pagination: { readonly limit: number; readonly offset: number };
  readonly total: number;
}

const ID = /^batch_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

const rowsOf = (count: number, fields: object = {}) =>
  Array.from({ length: count }, (_, n) => ({ target_url: `https://example.com/${n}`, name: `Table ${n}`, ...fields }));

function post<Body = Staged>(account: Account, json: unknown, headers: Record<string, string> = {}) {
  return account.call<Body>('POST', '/batches', { json, headers });
}

async function read(account: Account, id: string, query = ''): Promise<Read> {
  const { status, body } = await account.call<Read>('GET', `/batches/${id}${query}`);
  expect(status).toBe(200);
  return body;
}

async function codes(account: Account): Promise<Page> {
  return (await account.call<Page>('GET', '/qr-codes?limit=100')).body;
}

describe('POST /api/v1/batches', () => {
  test('201: every row processed in the request; the batch in `data` without rows, `Location` points at it', async () => {
    const account = await api.account();
    const { status, headers, body } = await post(account, { name: 'Terrace', rows: rowsOf(3) });
    expect(status).toBe(201);
    expect(body).toEqual({
      success: true,
      data: {
        id: expect.stringMatching(ID),
        name: 'Terrace',
        status: 'completed',
        counts: { total: 3, pending: 0, created: 3, failed: 0, skipped: 0 },
        domain_id: null,
        design: { foregroundColor: '#000000', backgroundColor: '#ffffff' },
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        completed_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
    });
    expect(headers.get('location')).toBe(`/api/v1/batches/${body.data.id}`);
  });

  test('its codes are like any other, in reverse row order in the list, and their scan URLs redirect', async () => {
    const account = await api.account();
    const rows = rowsOf(3, { folder: 'Berlin', tags: ['b', 'A', 'a'], campaign_type: 'menu' });
    const design = { foregroundColor: '#123456', backgroundColor: '#fed' };
    const { body } = await post(account, { rows, design });
    const { data } = await codes(account);
    expect(data.map(({ name }) => name)).toEqual(['Table 2', 'Table 1', 'Table 0']);
    const one = data[2];
    expect(one).toMatchObject({
      type: 'dynamic',
      target_url: 'https://example.com/0',
      folder: { name: 'Berlin' },
      tags: ['A', 'b'].toSorted(),
      campaign_type: 'menu',
      design,
      paused: false,
      scan_count: 0,
    });
    const [row] = (await read(account, body.data.id)).data.rows;
    expect(row).toMatchObject({ id: one?.id, short_code: one?.short_code, scan_url: one?.scan_url });
    const folders = await account.call<{ data: readonly { code_count: number }[] }>('GET', '/folders');
    expect(folders.body.data).toEqual([{ id: one?.folder?.id, name: 'Berlin', code_count: 3 }]);
    const scanned = await fetch(one?.scan_url ?? '', { redirect: 'manual' });
    expect([scanned.status, scanned.headers.get('location')]).toEqual([302, 'https://example.com/0']);
  });

  test.each([
    ['of another code', (taken: string) => `'${taken}'`],
    ['of the row before it', () => `current_setting('drawn.last')`],
  ])('a row that draws the short code %s draws again, and nothing else changes', async (_, same) => {
    const account = await api.account();
    const { short_code } = await account.create();
    const client = new pg.Client({ connectionString: api.signpost.databaseUrl });
    await client.connect();
    try {
      // The first collision aborts the copy of all rows, the second happens as rows are inserted one by one.
      await client.query(`
        create sequence drawn;
        create function collide() returns trigger language plpgsql as $$ begin
          if nextval('drawn') in (2, 4) then new.short_code := ${same(short_code)}; end if;
          perform set_config('drawn.last', new.short_code, false);
          return new;
        end $$;
        create trigger collide before insert on codes for each row execute function collide()`);
      const { status, body } = await post(account, { rows: rowsOf(6) });
      expect([status, body.data.counts.created]).toEqual([201, 6]);
      expect((await client.query('select last_value::integer as draws from drawn')).rows).toEqual([{ draws: 9 }]);
      const { rows } = (await read(account, body.data.id)).data;
      expect(new Set([short_code, ...rows.map((row) => row.short_code)]).size).toBe(7);
      for (const { scan_url, target_url } of rows) {
        const found = await fetch(scan_url ?? '', { redirect: 'manual' });
        expect([found.status, found.headers.get('location')]).toEqual([302, target_url]);
      }
      expect((await codes(account)).data).toHaveLength(7);
    } finally {
      await client.query('drop trigger if exists collide on codes; drop function collide; drop sequence drawn');
      await client.end();
    }
  });

  test('each row is validated on its own; a bad one fails with a reason and does not fail the batch', async () => {
    const account = await api.account();
    const good = { target_url: 'https://example.com/good' };
    const full = {
      ...good,
      name: '🍕'.repeat(200),
      campaign_type: '🍕'.repeat(64),
      external_ref: '🍕'.repeat(128),
      tags: Array.from({ length: 20 }, (_, n) => `t${n}`),
    };
    const bad: [unknown, RegExp][] = [
      [{ target_url: 'ftp://example.com' }, /^target_url: .*http/],
      [{}, /^target_url: /],
      [{ target_url: 7 }, /^target_url: /],
      [{ target_url: 'https://user:pw@example.com' }, /^target_url: /],
      [{ target_url: `${api.signpost.url}/r/Ab3dE9k` }, /^target_url: .*scan URL/],
      [{ ...good, name: 'x'.repeat(201) }, /^name: /],
      [{ ...good, name: 4 }, /^name: /],
      [{ ...good, campaign_type: 'x'.repeat(65) }, /^campaign_type: /],
      [{ ...good, external_ref: 'x'.repeat(129) }, /^external_ref: /],
      [{ ...good, tags: Array.from({ length: 21 }, (_, n) => `t${n}`) }, /^tags: /],
      [{ ...good, tags: 'a' }, /^tags: /],
      [{ ...good, name: 'nul\0' }, /^name: .*NUL/],
      ['https://example.com', /object/],
      [null, /object/],
      [[], /object/],
    ];
    const { status, body } = await post(account, { rows: [full, ...bad.map(([row]) => row), good] });
    expect(status).toBe(201);
    expect(body.data.counts).toEqual({ total: bad.length + 2, pending: 0, created: 2, failed: bad.length, skipped: 0 });
    const { data } = await read(account, body.data.id);
    expect(data.rows.map(({ status }) => status)).toEqual(['created', ...bad.map(() => 'failed'), 'created']);
    for (const [index, [row, reason]] of bad.entries()) {
      const actual = data.rows[index + 1];
      expect([row, actual?.reason]).toEqual([row, expect.stringMatching(reason)]);
      expect(actual).toMatchObject({ id: null, short_code: null, scan_url: null });
    }
    expect((await codes(account)).total).toBe(2);
  });

  test('an invalid folder or tag costs only the label, with a warning on the row', async () => {
    const account = await api.account();
    const { body: other } = await post(account, { rows: rowsOf(4) });
    const rows = ['none', '', 'nul\0', 'x'.repeat(101), `${'x'.repeat(1_000)} `].flatMap((wrong) =>
      rowsOf(1, { folder: wrong, tags: [wrong === 'none' ? '' : wrong, 'ok'] }),
    );
    const { body } = await post(account, { rows });
    expect(body.data.counts.created).toBe(rows.length);
    const { data } = await codes(account);
    for (const code of data.slice(0, rows.length)) expect(code).toMatchObject({ folder: null, tags: ['ok'] });
    for (const row of (await read(account, body.data.id)).data.rows) {
      expect(row.warnings).toEqual([expect.stringMatching(/^folder: /), expect.stringMatching(/^tags: /)]);
    }
    for (const row of (await read(account, other.data.id)).data.rows) expect(row.warnings).toBeUndefined();
  });

  test('a page of rows can be read however many invalid tags they had', async () => {
    const account = await api.account();
    const control = (n: number) => String.fromCharCode(0x80 + (n & 31));
    const tags = Array.from({ length: 1_024 }, (_, n) => control(n) + control(n >> 5));
    const { body } = await post(account, { rows: rowsOf(210, { tags }) });
    const { data } = await read(account, body.data.id, '?limit=1000');
    expect(data.rows.map(({ warnings }) => warnings)).toEqual(
      Array.from({ length: 210 }, () => ['tags: a name has no control characters.']),
    );
  });

  test('a row is read and stored as far as it matters, however many tags it has', async () => {
    const account = await api.account();
    const named = Array.from({ length: 10_000 }, (_, n) => `t${n}`);
    const invalid = Array.from({ length: 10_000 }, (_, n) => `\x7f${n}`);
    const { body } = await post(account, {
      rows: [named, invalid, [...invalid.slice(0, 4_000), 'ok']].flatMap((tags) => rowsOf(1, { tags })),
    });
    const { data } = await read(account, body.data.id);
    const reason = 'tags: a code can have at most 20 tags.';
    expect(data.rows).toMatchObject([
      { status: 'failed', reason },
      { status: 'failed', reason },
      { status: 'created', warnings: ['tags: a name has no control characters.'] },
    ]);
    expect((await codes(account)).data.map(({ tags }) => tags)).toEqual([['ok']]);
    const stored = await internal(api.signpost, BatchesService, account.id).getBatch({ id: body.data.id });
    expect(stored.rows.map(({ tags }) => tags.length)).toEqual([21, 21, 22]);
  });

  test('folders and tags by name are created once, by id they are found, in any spelling', async () => {
    const account = await api.account();
    const before = await account.create({ folder: 'Berlin', tags: ['menu'] });
    const folder = before.folder?.id ?? '';
    const tags = (await account.call<{ data: readonly { id: string }[] }>('GET', '/tags')).body.data;
    const rows = [
      ...rowsOf(1, { folder: ' bERLIN ', tags: ['MENU', 'menu '] }),
      ...rowsOf(1, { folder, tags: [tags[0]?.id] }),
      ...rowsOf(1, { folder: 'Wien', tags: ['x', 'X'] }),
      ...rowsOf(1, { folder: 'WIEN', tags: ['x'] }),
    ];
    await post(account, { rows });
    const { data } = await codes(account);
    expect(data.map(({ folder }) => folder?.name)).toEqual(['Wien', 'Wien', 'Berlin', 'Berlin', 'Berlin']);
    expect(data.map(({ tags }) => tags)).toEqual([['x'], ['x'], ['menu'], ['menu'], ['menu']]);
  });

  test('a folder and a tag are found by a decomposed name that has three times as many characters', async () => {
    const account = await api.account();
    const name = '각'.repeat(100);
    const { folder } = await account.create({ folder: name, tags: [name] });
    const decomposed = name.normalize('NFD');
    const { body } = await post(account, { rows: rowsOf(1, { folder: decomposed, tags: [decomposed] }) });
    expect(body.data.counts.created).toBe(1);
    expect((await codes(account)).data[0]).toMatchObject({ folder, tags: [name] });
  });

  test('duplicate destinations are fine, and so is a `target_url` with spaces around it, kept as sent unless it is long', async () => {
    const account = await api.account();
    const target_url = '  https://example.com/same ';
    const spaced = { target_url: `${' '.repeat(100_000)}${target_url}` };
    const { body } = await post(account, { rows: [{ target_url }, { target_url }, spaced] });
    expect(body.data.counts.created).toBe(3);
    const { rows } = (await read(account, body.data.id)).data;
    expect(rows.map((row) => row.target_url)).toEqual([target_url, target_url, target_url.trim()]);
    const { data } = await codes(account);
    expect(data.map((code) => code.target_url)).toEqual(Array(3).fill(target_url.trim()));
  });

  test('400: no rows, rows that are not an array, a field of the wrong type, malformed JSON, an unknown domain', async () => {
    const account = await api.account();
    const rows = rowsOf(1);
    for (const json of [
      {},
      { rows: [] },
      { rows: {} },
      { rows: null },
      { rows, name: 5 },
      { rows, name: 'x'.repeat(201) },
      { rows, name: 'nul\0' },
      { rows, design: 'red' },
      { rows, design: { foregroundColor: 'red' } },
      { rows, design: { backgroundColor: '' } },
      { rows, domain_id: 'domain_01kagcpn9te5gvjxq1rmm30w4h' },
      { rows, domain_id: 3 },
      [],
    ]) {
      const { status, body } = await post<Failure>(account, json);
      expect([json, status]).toEqual([json, 400]);
      expect(Object.keys(body)).toEqual(['error']);
    }
    expect((await account.call('POST', '/batches', { raw: '{"rows":' })).status).toBe(400);
    expect((await codes(account)).total).toBe(0);
    expect((await account.call<{ total: number }>('GET', '/batches')).body.total).toBe(0);
  });

  test('400: a colour that is none, named as in the request', async () => {
    const account = await api.account();
    for (const design of [{ foregroundColor: 'red' }, { backgroundColor: '#12345' }, { backgroundColor: '' }]) {
      const { body } = await post<Failure>(account, { rows: rowsOf(1), design });
      expect(body.error).toBe(`design.${Object.keys(design)[0]}: must be #rgb or #rrggbb.`);
    }
  });

  test('413: more than 25,000 rows, or more than 3,500,000 bytes', async () => {
    const account = await api.account({ plan: Plan.ENTERPRISE });
    const many = Array.from({ length: 25_001 }, () => ({}));
    for (const request of [{ json: { rows: many } }, { raw: 'x'.repeat(3_500_001) }]) {
      const { status, body } = await account.call<Failure>('POST', '/batches', request);
      expect(status).toBe(413);
      expect(body.error).toMatch(/rows|bytes/);
    }
  });

  test('403 `batch_limit_exceeded`: more rows than the plan allows', async () => {
    const account = await api.account({ overrides: { batchLimit: 2 } });
    const { status, body } = await post<Failure>(account, { rows: rowsOf(3) });
    expect([status, body.code]).toEqual([403, 'batch_limit_exceeded']);
    expect((await post(account, { rows: rowsOf(2) })).status).toBe(201);
  });

  test('rows past the QR code limit are skipped with the limit in the reason; 403 `qr_limit_reached` when none is left', async () => {
    const account = await api.account({ overrides: { codeLimit: 3n } });
    const invalid = { target_url: 'nonsense' };
    const { status, body } = await post(account, { rows: [invalid, ...rowsOf(4), invalid] });
    expect(status).toBe(201);
    expect(body.data.counts).toEqual({ total: 6, pending: 0, created: 3, failed: 2, skipped: 1 });
    const { rows } = (await read(account, body.data.id)).data;
    expect(rows.map(({ status }) => status)).toEqual(['failed', 'created', 'created', 'created', 'skipped', 'failed']);
    expect(rows[4]?.reason).toMatch(/\b3\b.*limit|limit.*\b3\b/);
    const refused = await post<Failure>(account, { rows: rowsOf(1) });
    expect([refused.status, refused.body]).toEqual([
      403,
      { error: expect.any(String), code: 'qr_limit_reached', limit: 3, used: 3 },
    ]);
  });

  test('costs 1 request for every 100 rows, at least 1; when less is left the answer is 429 and nothing is staged', async () => {
    const account = await api.account({ overrides: { monthlyQuota: 10n } });
    const small = await post(account, { rows: rowsOf(100) });
    expect(small.headers.get('x-ratelimit-remaining')).toBe('9');
    const larger = await post(account, { rows: rowsOf(101) });
    expect(larger.headers.get('x-ratelimit-remaining')).toBe('7');
    const refused = await post<Failure>(account, { rows: rowsOf(701) });
    expect(refused.status).toBe(429);
    expect(refused.headers.has('retry-after')).toBe(false);
    expect(refused.headers.get('x-ratelimit-remaining')).toBe('7');
    expect((await codes(account)).total).toBe(201);
  });

  test('batches that cost more than is left cost nothing, not even a place among the 120 requests of a minute', async () => {
    const account = await api.account({ overrides: { monthlyQuota: 1n } });
    for (let n = 0; n < 123; n += 3) {
      const refused = await Promise.all([
        post<Failure>(account, { rows: rowsOf(101) }),
        post<Failure>(account, { rows: rowsOf(101) }, { 'idempotency-key': `${n}` }),
        post<Failure>(account, { rows: rowsOf(101), name: 5 }),
      ]);
      for (const { status, body, headers } of refused) {
        expect([status, body.error, headers.get('x-ratelimit-remaining')]).toEqual([
          429,
          expect.stringMatching(/^This call costs 2 requests, but 1 of the 1 requests of this month remain;/),
          '1',
        ]);
      }
    }
    expect((await account.call('GET', '/folders')).status).toBe(200);
  });

  test('a replay costs 1 also if its batch would cost more than is left', async () => {
    const account = await api.account({ overrides: { monthlyQuota: 4n } });
    const key = { 'idempotency-key': 'one' };
    expect((await post(account, { rows: rowsOf(201) }, key)).status).toBe(201);
    const again = await post(account, { rows: rowsOf(201) }, key);
    expect([again.status, again.headers.get('idempotent-replay')]).toEqual([201, 'true']);
    expect(again.headers.get('x-ratelimit-remaining')).toBe('0');
  });

  test('a key replays the original answer with its status, creates nothing and costs 1', async () => {
    const account = await api.account();
    const json = { rows: rowsOf(150) };
    const headers = { 'idempotency-key': 'one' };
    const first = await post(account, json, headers);
    const again = await post(account, json, headers);
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get('location')).toBe(first.headers.get('location'));
    expect([first.headers.get('idempotent-replay'), again.headers.get('idempotent-replay')]).toEqual(['false', 'true']);
    expect(again.headers.get('x-ratelimit-remaining')).toBe(String(50_000 - 3));
    expect((await post<Failure>(account, { rows: rowsOf(151) }, headers)).status).toBe(409);
    expect((await codes(account)).total).toBe(150);
  });
});

describe('GET /api/v1/batches/{id}', () => {
  test('rows in the order sent, a page of them, filtered by status; `total` counts those that match', async () => {
    const account = await api.account();
    const rows = rowsOf(6).map((row, n) => ({
      ...row,
      ...(n % 2 ? {} : { target_url: 'x' }),
      ...(n === 1 ? { external_ref: 'T-1' } : {}),
    }));
    const { body } = await post(account, { rows });
    const all = await read(account, body.data.id);
    expect(all.pagination).toEqual({ limit: 100, offset: 0 });
    expect(all.total).toBe(6);
    expect(all.data.rows.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(all.data.rows[1]).toEqual({
      index: 1,
      status: 'created',
      target_url: 'https://example.com/1',
      name: 'Table 1',
      external_ref: 'T-1',
      id: expect.stringMatching(/^qr_/),
      short_code: expect.stringMatching(/^[2-9A-HJ-NP-Za-km-z]{7}$/),
      scan_url: expect.stringContaining('/r/'),
      reason: null,
    });
    const failed = await read(account, body.data.id, '?status=failed&limit=2&offset=1');
    expect([failed.total, failed.pagination]).toEqual([3, { limit: 2, offset: 1 }]);
    expect(failed.data.rows.map(({ index }) => index)).toEqual([2, 4]);
    expect((await read(account, body.data.id, '?status=created')).total).toBe(3);
    for (const status of ['pending', 'skipped']) {
      expect((await read(account, body.data.id, `?status=${status}`)).data.rows).toEqual([]);
    }
    expect((await read(account, body.data.id, '?limit=5000&offset=-3')).pagination).toEqual({
      limit: 1_000,
      offset: 0,
    });
    expect((await account.call('GET', `/batches/${body.data.id}?status=done`)).status).toBe(400);
  });

  test('404: no such batch on this account', async () => {
    const [account, other] = [await api.account(), await api.account()];
    const { body } = await post(other, { rows: rowsOf(1) });
    for (const id of [body.data.id, 'batch_01kagcpn9te5gvjxq1rmm30w4h', 'nonsense', '%00']) {
      expect((await account.call('GET', `/batches/${id}`)).status).toBe(404);
    }
  });

  test('rows that are larger than the message with which an internal caller sent them', async () => {
    const account = await api.account();
    const batches = internal(api.signpost, BatchesService, account.id);
    // A NUL is shown as a character of three bytes.
    const targetUrl = '\0'.repeat(2_048);
    const { batch } = await batches.createBatch({ rows: Array(1_000).fill({ targetUrl }) });
    const { data } = await read(account, batch?.id ?? '', '?limit=1000');
    const failed = [targetUrl.length, 'target_url: must not contain the NUL character.'];
    expect(data.rows.map(({ target_url, reason }) => [target_url?.length, reason])).toEqual(Array(1_000).fill(failed));
  });

  test('of a row that fails only as much is kept as says what was sent', async () => {
    const account = await api.account();
    const batches = internal(api.signpost, BatchesService, account.id);
    const long = '\0😀'.repeat(200_000);
    const tags = Array.from({ length: 500 }, (_, n) => `${n}`.padEnd(2_000, '\u0001'));
    const row = { name: long, campaignType: long, folder: long, externalRef: long, fault: long, tags };
    const targetUrl = ` https://example.com/\v${'x'.repeat(10_000)} `;
    const { batch } = await batches.createBatch({ rows: [{ ...row, targetUrl }] });
    const { data } = await read(account, batch?.id ?? '');
    const [failed] = data.rows;
    expect(failed?.target_url).toBe(`https://example.com/\u0080${'x'.repeat(2_027)}…`);
    expect(failed?.reason).toBe(`${'\u2400😀'.repeat(500)}…`);
    const { rows } = await batches.getBatch({ id: batch?.id ?? '' });
    for (const text of [failed?.name, failed?.external_ref, rows[0]?.campaignType])
      expect(text).toBe(`${'\u2400😀'.repeat(128)}…`);
    expect(rows[0]?.folder).toBe(`${'\u0080😀'.repeat(600)}…`);
    expect(rows[0]?.tags).toHaveLength(21);
    expect(rows[0]?.tags[20]).toBe(`20${'\u0080'.repeat(1_198)}…`);
    // Sent again as it was kept, it fails again.
    const again = await post(account, { rows: [{ target_url: failed?.target_url }] });
    expect(again.body.data.counts.failed).toBe(1);
  });

  test('a deleted code stays on its row', async () => {
    const account = await api.account();
    const { body } = await post(account, { rows: rowsOf(1) });
    const [before] = (await read(account, body.data.id)).data.rows;
    await account.call('DELETE', `/qr-codes/${before?.id}`);
    expect((await read(account, body.data.id)).data.rows).toEqual([before]);
  });
});

describe('GET /api/v1/batches', () => {
  test('newest first, a page of them', async () => {
    const account = await api.account();
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.unshift((await post(account, { rows: rowsOf(1) })).body.data.id);
    const listed = (query: string) =>
      account.call<{ data: readonly BatchJson[]; pagination: object; total: number }>('GET', `/batches${query}`);
    const { status, body } = await listed('');
    expect(status).toBe(200);
    expect(body).toEqual({
      success: true,
      data: expect.any(Array),
      pagination: { limit: 25, offset: 0 },
      total: 3,
    });
    expect(body.data.map(({ id }) => id)).toEqual(ids);
    expect((await listed('?limit=1&offset=1')).body.data.map(({ id }) => id)).toEqual([ids[1]]);
    expect((await listed('?limit=1000')).body.pagination).toEqual({ limit: 100, offset: 0 });
  });
});

test('`warnings` report only colours that scanners may not read', async () => {
  const account = await api.account();
  const warned = async (design: object) =>
    (await post<{ warnings?: readonly string[] }>(account, { rows: rowsOf(1), design })).body.warnings;
  expect(await warned({ foregroundColor: '#000' })).toBeUndefined();
  expect(await warned({ foregroundColor: '#999', backgroundColor: '#aaa' })).toEqual([
    expect.stringMatching(/^design: /),
  ]);
  expect(await warned({ foregroundColor: '#fff', backgroundColor: '#000' })).toEqual([expect.stringMatching(/light/)]);
});

test('concurrent single creates and batches never exceed the limit', async () => {
  const account = await api.account({ overrides: { codeLimit: 50n } });
  await Promise.all([
    ...Array.from({ length: 4 }, () => post(account, { rows: rowsOf(20) })),
    ...Array.from({ length: 30 }, () =>
      account.call<One>('POST', '/qr-codes', { json: { target_url: 'https://example.com' } }),
    ),
  ]);
  expect((await codes(account)).total).toBe(50);
});
