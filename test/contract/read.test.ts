import jsqr from 'jsqr';
import { PNG } from 'pngjs';
import { describe, expect, test } from 'vitest';
import { contract, type Page, TARGET } from './client.ts';

const api = contract();

interface Analytics {
  readonly data: {
    readonly period: number;
    readonly from: string;
    readonly to: string;
    readonly breakdowns: { readonly days: readonly { readonly date: string }[] };
  };
}

describe('GET /api/v1/qr-codes/{id}/analytics', () => {
  test('200: totals, and breakdowns of a window that ends today and includes it', async () => {
    const account = await api.account();
    const { id } = await account.create();
    const { status, body } = await account.call<Analytics>('GET', `/qr-codes/${id}/analytics?period=3`);
    const today = body.data.to;
    expect(status).toBe(200);
    expect(body).toEqual({
      success: true,
      data: {
        id,
        total_scans: 0,
        period: 3,
        from: new Date(Date.parse(today) - 2 * 86_400_000).toISOString().slice(0, 10),
        to: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
        period_scans: 0,
        unique_scans: 0,
        breakdowns: {
          days: [2, 1, 0].map((ago) => ({
            date: new Date(Date.parse(today) - ago * 86_400_000).toISOString().slice(0, 10),
            scans: 0,
            unique: 0,
          })),
          countries: [],
          devices: [],
          operating_systems: [],
          browsers: [],
          referrers: [],
        },
      },
    });
  });

  test.each([
    ['', 30],
    ['?period=0', 1],
    ['?period=-1', 1],
    ['?period=1000', 365],
    ['?period=week', 30],
    ['?period=1e2', 30],
    ['?period=5&period=9', 5],
  ])('period never fails a request: %j is %d days', async (query, period) => {
    const account = await api.account();
    const { id } = await account.create();
    const { status, body } = await account.call<Analytics>('GET', `/qr-codes/${id}/analytics${query}`);
    expect(status).toBe(200);
    expect(body.data.period).toBe(period);
    expect(body.data.breakdowns.days).toHaveLength(period);
  });
});

describe('GET /api/v1/qr-codes/{id}/image', () => {
  async function image(query: string, headers: Record<string, string> = {}) {
    const account = await api.account();
    const { id, scan_url } = await account.create({ name: 'Fußgänger "A"' });
    const authorization = `Bearer ${account.apiKey}`;
    const get = (more = headers) =>
      fetch(`${api.signpost.url}/api/v1/qr-codes/${id}/image${query}`, { headers: { authorization, ...more } });
    return { scan_url, get };
  }

  test.each([
    ['', 512],
    ['?size=400', 400],
    ['?size=1', 128],
    ['?size=99999', 4096],
    ['?size=big', 512],
    ['?format=png&size=200', 200],
  ])('a PNG that decodes to the scan URL: %j is %d pixels wide', async (query, size) => {
    const { scan_url, get } = await image(query);
    const response = await get();
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('image/png');
    const { width, height, data } = PNG.sync.read(Buffer.from(await response.arrayBuffer()));
    expect([width, height]).toEqual([size, size]);
    expect(jsqr.default(new Uint8ClampedArray(data), width, height)?.data).toBe(scan_url);
  });

  test('an SVG, with a file name', async () => {
    const { get } = await image('?format=svg&size=200');
    const response = await get();
    expect(response.headers.get('content-type')).toBe('image/svg+xml');
    expect(await response.text()).toMatch(/^<svg /);
    const disposition = response.headers.get('content-disposition') ?? '';
    expect(disposition).toMatch(/^inline; filename="[\w-]+\.svg"$/);
    expect(response.headers.get('cache-control')).toMatch(/^private/);
  });

  test('in the colours of the code, with a quiet zone of two modules; a paused code is drawn too', async () => {
    const account = await api.account();
    const design = { foregroundColor: '#102080', backgroundColor: '#fed' };
    const json = { rows: [{ target_url: TARGET }], design };
    await account.call('POST', '/batches', { json });
    const { id } = (await account.call<Page>('GET', '/qr-codes')).body.data[0] ?? {};
    await account.call('PATCH', `/qr-codes/${id}`, { json: { paused: true } });
    const authorization = `Bearer ${account.apiKey}`;
    const get = (query: string) =>
      fetch(`${api.signpost.url}/api/v1/qr-codes/${id}/image${query}`, { headers: { authorization } });
    const { width, data } = PNG.sync.read(Buffer.from(await (await get('?size=700')).arrayBuffer()));
    const colours = new Set<string>();
    for (let at = 0; at < data.length; at += 4) colours.add(data.subarray(at, at + 4).toString('hex'));
    expect(colours).toEqual(new Set(['102080ff', 'ffeeddff']));
    // The first dark pixel is the corner of a finder, seven modules wide.
    const dark = (x: number, y: number) => data[(y * width + x) * 4] === 0x10;
    const start = Array.from({ length: width }, (_, at) => at).find((at) => dark(at, at)) ?? 0;
    let end = start;
    while (dark(end, start)) end++;
    const module = (end - start) / 7;
    expect(start / module).toBeCloseTo(2, 0);
    const svg = await (await get('?format=svg&size=9999')).text();
    expect(svg).toContain('#102080');
    expect(svg).toContain('#fed');
    expect(svg).toBe(await (await get('?format=svg')).text());
  });

  test.each(['gif', 'PNG', '', 'png,svg'])('400: format %j', async (format) => {
    const account = await api.account();
    const { id } = await account.create();
    const { status, body } = await account.call('GET', `/qr-codes/${id}/image?format=${format}`);
    expect(status).toBe(400);
    expect(body.error).toMatch(/^format/);
  });

  test('304 without a body when `If-None-Match` has the entity tag, weak or among others; the rate headers are there', async () => {
    const { get } = await image('');
    const tag = (await get()).headers.get('etag') ?? '';
    expect(tag).toMatch(/^"[^"]+"$/);
    for (const known of [tag, `W/${tag}`, `"other", ${tag}`, '*', '*'.repeat(10_001)]) {
      const response = await get({ 'if-none-match': known });
      expect(response.status).toBe(304);
      expect(response.headers.get('etag')).toBe(tag);
      expect(response.headers.get('x-ratelimit-limit')).toBe('50000');
      expect(await response.text()).toBe('');
    }
    expect((await get({ 'if-none-match': '"other"' })).status).toBe(200);
  });
});

describe.each([
  ['folders', 'folder', 'folder_'],
  ['tags', 'tags', 'tag_'],
])('GET /api/v1/%s', (path, field, prefix) => {
  test('200: by name, case-insensitively, each with its number of live codes', async () => {
    const account = await api.account();
    const named = (name: string) => ({ [field]: field === 'tags' ? [name] : name });
    for (const name of ['beta', 'Alpha', 'gamma', 'beta']) await account.create(named(name));
    const { id } = await account.create(named('beta'));
    await account.call('DELETE', `/qr-codes/${id}`);
    const { status, body } = await account.call<unknown>('GET', `/${path}`);
    expect(status).toBe(200);
    const label = (name: string, code_count: number) => ({ id: expect.stringMatching(`^${prefix}`), name, code_count });
    expect(body).toEqual({ success: true, data: [label('Alpha', 1), label('beta', 2), label('gamma', 1)] });
  });

  test('200: an account without any gets an empty list', async () => {
    const account = await api.account();
    expect((await account.call<unknown>('GET', `/${path}`)).body).toEqual({ success: true, data: [] });
  });

  test('405: there is no create, rename or delete endpoint', async () => {
    const account = await api.account();
    for (const method of ['POST', 'PATCH', 'PUT', 'DELETE']) {
      expect((await account.call(method, `/${path}`)).status).toBe(405);
    }
  });
});
