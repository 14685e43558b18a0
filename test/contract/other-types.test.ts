import { ConnectError } from '@connectrpc/connect';
import jsqr from 'jsqr';
import pg from 'pg';
import { PNG } from 'pngjs';
import { describe, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { CodesService, WifiSecurity } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { insertStaticCodes } from '../harness/insert-static-codes.ts';
import { type Account, contract, type One, type Page, TARGET } from './client.ts';
import { internal } from './internal.ts';

const api = contract();

/** Routes of internal changes arrive over the log. */
const EVENTUALLY = { interval: 25 };

const codes = (account: Account) => internal(api.signpost, CodesService, account.id);
const scan = (shortCode: string) => api.call<string>('GET', `/r/${shortCode}`);
const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => 'succeeded',
    (error: unknown) => readFailure(error).reason,
  );

async function connected(work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: api.signpost.databaseUrl });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

const query = (text: string, values: unknown[]) => connected((client) => client.query(text, values));

async function scanned(account: Account, id: string): Promise<string | undefined> {
  const authorization = `Bearer ${account.apiKey}`;
  const response = await fetch(`${api.signpost.url}/api/v1/qr-codes/${id}/image?size=600`, {
    headers: { authorization },
  });
  expect(response.status).toBe(200);
  const { data, width, height } = PNG.sync.read(Buffer.from(await response.arrayBuffer()));
  return jsqr.default(new Uint8ClampedArray(data), width, height)?.data;
}

interface Filing {
  readonly name?: string;
  readonly folder?: string;
  readonly tags?: string[];
}

const withKey = (key?: string) => (key === undefined ? {} : { headers: { 'idempotency-key': key } });

const PAGE = {
  title: 'Menu & <wine>',
  text: 'Open today\n12–23 h',
  links: [{ label: 'Order "now"', url: 'https://example.com/order?a=1&b=2' }],
  foregroundColor: '#fff',
  backgroundColor: '#103050',
};

async function staticCode(account: Account) {
  const { code } = await codes(account).createStaticCode({
    content: { case: 'payload', value: 'BEGIN:VCARD\nEND:VCARD' },
  });
  return code?.id ?? '';
}

async function landingPageCode(account: Account) {
  const { code } = await codes(account).createLandingPageCode({ landingPage: PAGE });
  return code?.id ?? '';
}

describe('a static code', () => {
  test('is read, listed and rendered with its payload; its scan URL is a 404', async () => {
    const account = await api.account();
    const wifi = { ssid: 'Café; "west"', password: 'a:b\\c,d;e', security: WifiSecurity.WPA };
    const { code } = await codes(account).createStaticCode({
      name: 'Guests',
      content: { case: 'wifi', value: wifi },
      design: { foregroundColor: '#036', backgroundColor: '#ffffff' },
    });
    const payload = 'WIFI:T:WPA;S:Café\\; \\"west\\";P:a\\:b\\\\c\\,d\\;e;;';
    const read = (await account.call<One>('GET', `/qr-codes/${code?.id}`)).body.data;
    expect(read).toMatchObject({
      type: 'static',
      payload,
      name: 'Guests',
      design: { foregroundColor: '#036', backgroundColor: '#ffffff' },
      scan_count: 0,
    });
    expect(read).not.toHaveProperty('target_url');
    expect((await account.call<Page>('GET', '/qr-codes')).body.data).toEqual([read]);
    expect(await scanned(account, read.id)).toBe(payload);
    expect((await scan(read.short_code)).status).toBe(404);
  });

  test('encodes any text up to 2,331 bytes', async () => {
    const account = await api.account();
    const payload = `${'ä€0'.repeat(388)}xyz`;
    expect(Buffer.byteLength(payload)).toBe(2_331);
    const { code } = await codes(account).createStaticCode({ content: { case: 'payload', value: payload } });
    const image = await account.call<string>('GET', `/qr-codes/${code?.id}/image?format=svg`);
    expect(image.status).toBe(200);
    for (const value of ['', `${payload}x`, 'a\0b']) {
      const call = codes(account).createStaticCode({ content: { case: 'payload', value } });
      expect(await reasonOf(call)).toBe('INVALID_FIELD');
    }
    expect(await reasonOf(codes(account).createStaticCode({}))).toBe('INVALID_FIELD');
  });
});

test('409: the image of a code with nothing to encode, in any format', async () => {
  const account = await api.account();
  const id = await staticCode(account);
  await query('update codes set payload = null where id = $1', [decodeId('qr', id)]);
  for (const parameters of ['', '?format=svg', '?format=png&size=200']) {
    const { status, body } = await account.call('GET', `/qr-codes/${id}/image${parameters}`);
    expect(status).toBe(409);
    expect(body).toEqual({ error: 'This code has nothing to encode.' });
  }
  expect((await account.call('GET', `/qr-codes/${id}/image?format=gif`)).status).toBe(400);
  expect((await account.call('GET', `/qr-codes/${id}/image?format=png&format=gif`)).status).toBe(400);
  expect((await account.call<One>('GET', `/qr-codes/${id}`)).body.data).toMatchObject({ type: 'static' });
});

describe('a landing-page code', () => {
  test('is read and rendered with its scan URL, which shows the page and counts scans', async () => {
    const account = await api.account();
    const read = (await account.call<One>('GET', `/qr-codes/${await landingPageCode(account)}`)).body.data;
    expect(read).toMatchObject({ type: 'landing_page', paused: false });
    expect(read).not.toHaveProperty('target_url');
    expect(await scanned(account, read.id)).toBe(read.scan_url);
    const page = await scan(read.short_code);
    expect(page.status).toBe(200);
    for (const part of ['Menu &amp; &lt;wine&gt;', 'Open today\n12–23 h', 'Order &quot;now&quot;', 'a=1&amp;b=2']) {
      expect(page.body).toContain(part);
    }
    expect(page.body).toContain('--ground:#103050;--ink:#ffffff');
    const count = async () => (await account.call<One>('GET', `/qr-codes/${read.id}`)).body.data.scan_count;
    await expect.poll(count, EVENTUALLY).toBe(1);
  });

  test.each([
    ['no title', { title: ' ' }],
    ['a title of two lines', { title: 'a\nb' }],
    ['a title that is too long', { title: 'x'.repeat(201) }],
    ['a text that is too long', { text: 'x'.repeat(5_001) }],
    ['a control character in its text', { text: 'a\u0007b' }],
    ['a link without a label', { links: [{ label: ' ', url: 'https://example.com' }] }],
    ['a link that is no web address', { links: [{ label: 'x', url: 'javascript:alert(1)' }] }],
    ['a link with a password', { links: [{ label: 'x', url: 'https://a:b@example.com' }] }],
    ['too many links', { links: Array.from({ length: 21 }, () => ({ label: 'x', url: 'https://example.com' })) }],
    ['too much in all', { links: Array(20).fill({ label: 'x', url: `https://example.com/${'你'.repeat(1_500)}` }) }],
    ['a colour that is none', { foregroundColor: 'red;}' }],
  ])('with %s is rejected, and nothing is created', async (_, change) => {
    const account = await api.account();
    const call = codes(account).createLandingPageCode({ landingPage: { ...PAGE, ...change } });
    expect(await reasonOf(call)).toBe('INVALID_FIELD');
    expect((await account.call<Page>('GET', '/qr-codes')).body.total).toBe(0);
  });

  test('can be changed without a new print; an invalid change, or one for another type, changes nothing', async () => {
    const account = await api.account();
    const id = await landingPageCode(account);
    const code = (await account.call<One>('GET', `/qr-codes/${id}`)).body.data;
    const updateMask = { paths: ['landing_page'] };
    const changed = await codes(account).updateCode({ id, updateMask, landingPage: { title: 'Closed' } });
    expect(changed.code?.landingPage).toMatchObject({ title: 'Closed', text: '', links: [], backgroundColor: '' });
    await expect.poll(async () => (await scan(code.short_code)).body, EVENTUALLY).toContain('Closed');
    expect((await scan(code.short_code)).body).not.toContain('Order');
    const again = await codes(account).updateCode({ id, updateMask, landingPage: { title: ' Closed ' } });
    expect(again.code?.updatedAt).toEqual(changed.code?.updatedAt);
    for (const landingPage of [undefined, { title: '' }, { ...PAGE, links: [{ label: 'x', url: 'x' }] }]) {
      const call = codes(account).updateCode({ id, updateMask, ...(landingPage ? { landingPage } : {}) });
      expect(await reasonOf(call)).toBe('INVALID_FIELD');
    }
    const other = await account.create();
    const parts = { id, updateMask: { paths: ['landing_page.title'] }, landingPage: { title: 'Open' } };
    expect(await reasonOf(codes(account).updateCode(parts))).toBe('INVALID_FIELD');
    expect(await reasonOf(codes(account).updateCode({ id: other.id, updateMask, landingPage: PAGE }))).toBe(
      'NO_TARGET',
    );
    expect((await account.call('PATCH', `/qr-codes/${id}`, { json: { landing_page: PAGE } })).status).toBe(400);
    expect((await codes(account).getCode({ id })).code?.landingPage).toEqual(changed.code?.landingPage);
  });

  test('with a field that a later release has added can be read, changed and shown', async () => {
    const account = await api.account();
    const id = await landingPageCode(account);
    const later = `landing_page || '{"later": {"field": 1}}'`;
    await query(`update codes set landing_page = ${later} where id = $1`, [decodeId('qr', id)]);
    expect((await codes(account).getCode({ id })).code?.landingPage).toMatchObject({ title: PAGE.title });
    const { status, body } = await account.call<One>('PATCH', `/qr-codes/${id}`, { json: { paused: true } });
    expect([status, body.data?.paused]).toEqual([200, true]);
    expect((await account.call('PATCH', `/qr-codes/${id}`, { json: { paused: false } })).status).toBe(200);
    expect((await scan(body.data.short_code)).body).toContain('Menu &amp; &lt;wine&gt;');
  });

  test('on a domain that is not the account’s is rejected', async () => {
    const account = await api.account();
    const domainId = 'domain_01kagcpn9te5gvjxq1rmm30w4h';
    expect(await reasonOf(codes(account).createLandingPageCode({ landingPage: PAGE, domainId }))).toBe(
      'UNKNOWN_DOMAIN',
    );
  });
});

describe.each([
  ['static', staticCode],
  ['landing_page', landingPageCode],
])('PATCH of a %s code', (_, make) => {
  test('409 with a target, whatever else is sent, and nothing changes; a bad target is a 400', async () => {
    const account = await api.account();
    const id = await make(account);
    const before = (await account.call<One>('GET', `/qr-codes/${id}`)).body;
    const json = { target_url: TARGET, name: 'x', paused: true, folder: 'y', tags: ['z'] };
    const { status, body } = await account.call('PATCH', `/qr-codes/${id}`, { json });
    expect(status).toBe(409);
    expect(body).toEqual({ error: 'Only dynamic codes have a target that can be changed.' });
    expect((await account.call<One>('GET', `/qr-codes/${id}`)).body).toEqual(before);
    expect((await account.call<{ data: unknown[] }>('GET', '/folders')).body.data).toEqual([]);
    expect((await account.call('PATCH', `/qr-codes/${id}`, { json: { target_url: 'x' } })).status).toBe(400);
  });

  test('everything else can be changed, and DELETE deletes it', async () => {
    const account = await api.account();
    const id = await make(account);
    const json = { name: 'x', paused: true, folder: 'y', tags: ['z'] };
    const { status, body } = await account.call<One>('PATCH', `/qr-codes/${id}`, { json });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ name: 'x', paused: true, folder: { name: 'y' }, tags: ['z'] });
    expect((await account.call('DELETE', `/qr-codes/${id}`)).status).toBe(200);
    expect((await scan(body.data.short_code)).status).toBe(410);
  });
});

describe('restoring', () => {
  test('returns a code to its former state, its scan URL too', async () => {
    const account = await api.account();
    const code = await account.create({ name: 'a', folder: 'Berlin', tags: ['x', 'y'] });
    await scan(code.short_code);
    await account.call('DELETE', `/qr-codes/${code.id}`);
    expect((await scan(code.short_code)).status).toBe(410);
    const restored = await codes(account).restoreCode({ id: code.id });
    expect(restored.code?.id).toBe(code.id);
    const read = async () => (await account.call<One>('GET', `/qr-codes/${code.id}`)).body.data;
    await expect.poll(async () => (await read()).scan_count, EVENTUALLY).toBe(1);
    const { updated_at } = await read();
    expect(await read()).toEqual({ ...code, scan_count: 1, version: 3, updated_at });
    expect(updated_at > code.updated_at).toBe(true);
    await expect.poll(async () => (await scan(code.short_code)).status, EVENTUALLY).toBe(302);
  });

  test('a code that is not deleted is unchanged; another account’s is not found', async () => {
    const [account, other] = [await api.account(), await api.account()];
    const code = await account.create();
    await codes(account).restoreCode({ id: code.id });
    expect((await account.call<One>('GET', `/qr-codes/${code.id}`)).body.data).toEqual(code);
    await account.call('DELETE', `/qr-codes/${code.id}`);
    for (const id of [code.id, 'qr_01kagcpn9te5gvjxq1rmm30w4h', 'x']) {
      expect(await reasonOf(codes(other).restoreCode({ id }))).toBe('NOT_FOUND');
    }
  });

  test('counts a dynamic code towards the limit again, exactly, but no other types', async () => {
    const account = await api.account({ overrides: { codeLimit: 3n } });
    const deleted: string[] = [];
    for (let count = 0; count < 6; count++) {
      const { id } = await account.create();
      await account.call('DELETE', `/qr-codes/${id}`);
      deleted.push(id);
    }
    const answers = await Promise.all(deleted.map((id) => reasonOf(codes(account).restoreCode({ id }))));
    expect(answers.sort()).toEqual([...Array(3).fill('QR_LIMIT_REACHED'), ...Array(3).fill('succeeded')]);
    const expectFull = async () => {
      const { status, body } = await account.call('POST', '/qr-codes', { json: { target_url: TARGET } });
      expect([status, body.code, body.limit, body.used]).toEqual([403, 'qr_limit_reached', 3, 3]);
    };
    await expectFull();
    const other = await staticCode(account);
    await account.call('DELETE', `/qr-codes/${other}`);
    await expectFull();
    expect(await reasonOf(codes(account).restoreCode({ id: other }))).toBe('succeeded');
    await expectFull();
  });
});

test('an account has at most 10,000 codes that plans do not limit, exactly', async () => {
  const account = await api.account();
  const id = await staticCode(account);
  await account.call('DELETE', `/qr-codes/${id}`);
  await connected((client) => insertStaticCodes(client, account.id, 9_998));
  // Codes of a batch that are still to be created are reserved in the counter.
  await query('update code_counts set live = 500 where account_id = $1', [decodeId('acct', account.id)]);
  const page = () => codes(account).createLandingPageCode({ landingPage: PAGE });
  const created = await Promise.all([staticCode(account), page(), staticCode(account), page()].map(reasonOf));
  expect(created.sort()).toEqual(['LIMIT_REACHED', 'LIMIT_REACHED', 'succeeded', 'succeeded']);
  const restored = codes(account).restoreCode({ id });
  await expect(restored).rejects.toThrow(
    'Remove one first: an account has at most 10,000 static and landing-page codes.',
  );
  await expect(account.create()).resolves.toBeTruthy();
});

describe.each([
  [
    'CreateStaticCode',
    (account: Account, filing: Filing, key?: string) =>
      codes(account).createStaticCode({ content: { case: 'payload', value: 'x' }, ...filing }, withKey(key)),
  ],
  [
    'CreateLandingPageCode',
    (account: Account, filing: Filing, key?: string) =>
      codes(account).createLandingPageCode({ landingPage: PAGE, ...filing }, withKey(key)),
  ],
])('%s', (_, make) => {
  const total = async (account: Account) => (await account.call<Page>('GET', '/qr-codes')).body.total;

  test('replays its answer for the same idempotency key, and creates one code', async () => {
    const account = await api.account();
    const filing = { name: 'x', folder: 'Berlin', tags: ['none', ''] };
    const first = await make(account, filing, 'one');
    expect(first.warnings).toHaveLength(1);
    expect(await make(account, filing, 'one')).toEqual(first);
    expect(await reasonOf(make(account, { name: 'y' }, 'one'))).toBe('IDEMPOTENCY_KEY_REUSED');
    expect(await reasonOf(make(account, filing, 'a key'))).toBe('INVALID_IDEMPOTENCY_KEY');
    expect(await total(account)).toBe(1);
    expect((await make(account, filing, 'two')).code?.id).not.toBe(first.code?.id);
    await make(account, filing);
    await make(account, filing);
    expect(await total(account)).toBe(4);
  });

  test('of concurrent calls with one idempotency key, one creates the code', async () => {
    const account = await api.account();
    const answers = await Promise.allSettled(Array.from({ length: 8 }, () => make(account, {}, 'one')));
    const created = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value.code?.id] : []));
    expect(new Set(created).size).toBe(1);
    for (const answer of answers) {
      if (answer.status === 'rejected') expect(readFailure(answer.reason).reason).toBe('IDEMPOTENCY_KEY_IN_FLIGHT');
    }
    expect(await total(account)).toBe(1);
  });

  test.each([
    ['a name that is too long', { name: 'x'.repeat(201) }],
    ['a NUL in its name', { name: 'a\0b' }],
    ['too many tags', { folder: 'x', tags: Array.from({ length: 21 }, (_, index) => `tag ${index}`) }],
  ])('replays the error for %s, and creates neither code nor labels', async (_what, filing) => {
    const account = await api.account();
    const attempts = [
      ['one', 'false'],
      ['one', 'true'],
      [undefined, null],
    ] as const;
    for (const [key, replayed] of attempts) {
      const error = await make(account, filing, key).then(
        () => undefined,
        (thrown: unknown) => ConnectError.from(thrown),
      );
      const message = expect.stringMatching(/^(name|tags): /);
      expect(readFailure(error)).toMatchObject({ reason: 'INVALID_FIELD', message });
      expect(error?.metadata.get('idempotent-replay')).toBe(replayed);
    }
    expect(await total(account)).toBe(0);
    expect((await account.call<{ data: unknown[] }>('GET', '/folders')).body.data).toEqual([]);
  });

  test('is filed and tagged as it is created', async () => {
    const account = await api.account();
    const { folder: existing } = await account.create({ folder: 'Berlin', tags: ['menu'] });
    const { code, warnings } = await make(account, { folder: ' BERLIN ', tags: ['summer', 'Menu', 'menu', 'summer'] });
    expect(warnings).toEqual([]);
    expect(code).toMatchObject({ folder: existing, tags: ['menu', 'summer'], version: 1n });
    const read = (await account.call<One>('GET', `/qr-codes/${code?.id}`)).body.data;
    expect(read).toMatchObject({ folder: existing, tags: ['menu', 'summer'] });
    const byId = await make(account, { folder: existing?.id ?? '' });
    expect(byId.code?.folder).toMatchObject({ ...existing });
  });

  test('warns of labels that cannot be applied, and creates the code without them', async () => {
    const account = await api.account();
    const filing = { folder: 'none', tags: ['', 'a\0b', 'menu'] };
    const { code, warnings } = await make(account, filing);
    expect(code?.folder).toBeUndefined();
    expect(code?.tags).toEqual(['menu']);
    const json = { target_url: TARGET, ...filing };
    const dynamic = await account.call<One & { warnings: string[] }>('POST', '/qr-codes', { json });
    expect(warnings).toEqual(dynamic.body.warnings);
  });
});

test('an API key cannot call these methods', async () => {
  const account = await api.account();
  const withKey = internal({ ...api.signpost, serviceToken: account.apiKey }, CodesService, account.id);
  expect(await reasonOf(withKey.restoreCode({ id: 'x' }))).toBe('INTERNAL_METHOD');
  expect(await reasonOf(withKey.createLandingPageCode({ landingPage: PAGE }))).toBe('INTERNAL_METHOD');
  const error = await withKey.restoreCode({ id: 'x' }).catch((error: unknown) => ConnectError.from(error));
  expect((error as ConnectError).metadata.get('ratelimit-remaining')).toBe('49997');
});
