import { describe, expect, test } from 'vitest';
import { contract, TARGET } from './client.ts';
import { exchange } from './raw-http.ts';

const api = contract();

const MIB = 1024 * 1024;

describe('paths and methods', () => {
  test.each([
    '/api',
    '/api/',
    '/api/v1',
    '/api/v2/qr-codes',
    '/api/v1/qr-codes/',
    '/api/v1/QR-CODES',
    '/api/v1/qr-codes/%zz',
  ])('404: an unknown path: %s', async (path) => {
    const account = await api.account();
    const { status, body } = await api.call('GET', path, { headers: { authorization: `Bearer ${account.apiKey}` } });
    expect(status).toBe(404);
    expect(body).toEqual({ error: `There is no endpoint ${path}; see /docs.` });
  });

  test('404: a long unknown path is shown in part, and its query is not', async () => {
    const path = `/api/${'x'.repeat(1_000)}`;
    const { body } = await api.call('GET', `${path}?email=anna@example.com`);
    expect(body).toEqual({ error: `There is no endpoint ${path.slice(0, 200)}; see /docs.` });
  });

  test.each([
    ['/api/v1/qr-codes', ['GET', 'HEAD', 'POST', 'OPTIONS']],
    ['/api/v1/qr-codes/qr_1', ['GET', 'HEAD', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/api/v1/qr-codes/qr_1/image', ['GET', 'HEAD', 'OPTIONS']],
    ['/api/v1/qr-codes/qr_1/analytics', ['GET', 'HEAD', 'OPTIONS']],
    ['/api/v1/batches', ['GET', 'HEAD', 'POST', 'OPTIONS']],
    ['/api/v1/batches/batch_1', ['GET', 'HEAD', 'OPTIONS']],
    ['/api/v1/folders', ['GET', 'HEAD', 'OPTIONS']],
    ['/api/v1/tags', ['GET', 'HEAD', 'OPTIONS']],
    ['/api/v1/openapi', ['GET', 'HEAD', 'OPTIONS']],
  ])('405 with `Allow`: any other method of %s; OPTIONS too', async (path, allowed) => {
    for (const method of ['PUT', 'POST', 'PATCH', 'DELETE', 'PROPFIND', 'QUERY'].filter(
      (name) => !allowed.includes(name),
    )) {
      const { status, headers, body } = await api.call(method, path);
      expect([method, status]).toEqual([method, 405]);
      expect(headers.get('allow')?.split(', ').sort()).toEqual([...allowed].sort());
      expect(Object.keys(body)).toEqual(['error']);
    }
    const { status, headers } = await api.call('OPTIONS', path);
    expect(status).toBe(204);
    expect(headers.get('allow')?.split(', ').sort()).toEqual([...allowed].sort());
  });

  test.each(['/healthz', '/readyz?at=1', '/tls/ask?domain=a.example'])('405 with `Allow`: %s', async (path) => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const { status, headers, body } = await api.call(method, path);
      expect([method, status, headers.get('allow')]).toEqual([method, 405, 'GET, HEAD']);
      expect(headers.get('x-request-id')).toBeTruthy();
      expect(Object.keys(body)).toEqual(['error']);
    }
    expect((await api.call('HEAD', path)).status).toBe((await api.call('GET', path)).status);
  });

  test.each(['/qr-codes/', '/qr-codes//image', '/qr-codes//analytics', '/batches/', '/folders/'])(
    '404: any method of %s, which has no id',
    async (path) => {
      const account = await api.account();
      for (const method of ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS', 'PUT']) {
        const { status, headers, body } = await account.call(method, path);
        expect([method, status, headers.has('allow')]).toEqual([method, 404, false]);
        if (method !== 'HEAD') expect(body.error).toBe(`There is no endpoint /api/v1${path}; see /docs.`);
      }
    },
  );

  test('HEAD answers as GET does, without a body', async () => {
    const account = await api.account();
    const get = await account.call<unknown>('GET', '/tags');
    const head = await account.call<unknown>('HEAD', '/tags');
    expect([head.status, head.body]).toEqual([200, '']);
    expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'));
  });

  test('a 304 to GET and HEAD has no length', async () => {
    const account = await api.account();
    const { id } = await account.create();
    const headers = { authorization: `Bearer ${account.apiKey}`, 'if-none-match': '*' };
    for (const path of ['/docs', '/api/v1/openapi', `/api/v1/qr-codes/${id}/image`]) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await api.call(method, path, { headers });
        expect([method, path, answer.status]).toEqual([method, path, 304]);
        expect(answer.headers.get('content-length')).toBeNull();
        expect(answer.headers.get('etag')).toBeTruthy();
      }
    }
  });
});

describe('X-Request-Id', () => {
  test.each([
    ['the caller’s', 'abc-123', /^abc-123$/],
    ['the caller’s of 128 characters', 'r'.repeat(128), /^r{128}$/],
    ['a new one instead of 129 characters', 'r'.repeat(129), /^(?!r)[\x21-\x7e]{1,128}$/],
    ['a new one instead of one with spaces', 'a b', /^(?!a)[\x21-\x7e]{1,128}$/],
    ['a new one', undefined, /^[\x21-\x7e]{1,128}$/],
  ])('is on every answer: %s', async (_what, given, expected) => {
    const account = await api.account();
    const headers: Record<string, string> = given === undefined ? {} : { 'x-request-id': given };
    for (const path of ['/tags', '/qr-codes/nope', '/nothing', '/qr-codes/%zz', '/openapi']) {
      const answer = await account.call('GET', path, { headers });
      expect(answer.headers.get('x-request-id')).toMatch(expected);
    }
    for (const path of ['/healthz?at=1', '/readyz', '/tls/ask?domain=a.example']) {
      expect((await api.call('GET', path, { headers })).headers.get('x-request-id')).toMatch(expected);
    }
    expect((await account.call('PUT', '/tags', { headers })).headers.get('x-request-id')).toMatch(expected);
    expect((await api.call('GET', '/api/v1/tags', { headers })).headers.get('x-request-id')).toMatch(expected);
  });
});

describe('answers are private and inert', () => {
  test('no answer is cached, sniffed or executed, and none names the server software', async () => {
    const account = await api.account();
    for (const path of ['/tags', '/nothing', '/qr-codes/nope']) {
      const { headers } = await account.call('GET', path);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'/);
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(headers.has('server') || headers.has('x-powered-by')).toBe(false);
    }
  });
});

describe('bodies', () => {
  function head(apiKey: string, path: string, more: readonly string[]): string {
    return [`POST /api/v1${path} HTTP/1.1`, 'Host: localhost', `Authorization: Bearer ${apiKey}`, ...more, '', ''].join(
      '\r\n',
    );
  }

  test('1 MiB is accepted', async () => {
    const account = await api.account();
    const json = JSON.stringify({ target_url: TARGET, ignored: '' });
    const raw = json.replace('""', `"${'x'.repeat(MIB - json.length)}"`);
    expect(Buffer.byteLength(raw)).toBe(MIB);
    expect((await account.call('POST', '/qr-codes', { raw })).status).toBe(201);
  });

  test.each([
    ['/qr-codes', MIB],
    ['/batches', 3_500_000],
  ])('413: POST %s with a `Content-Length` over %d bytes is rejected before reading', async (path, limit) => {
    const { apiKey } = await api.account();
    // No byte of the body is sent.
    const parts = [head(apiKey, path, [`Content-Length: ${limit + 1}`])];
    const { url } = api.signpost;
    const answered = await exchange(url, parts);
    expect(answered.status).toBe(413);
    expect(JSON.parse(answered.body)).toEqual({ error: expect.stringContaining(String(limit)) });
    expect(answered.head).toMatch(/\r\nx-ratelimit-remaining: /i);
  });

  test('413: a body over 1 MiB of a request that takes none', async () => {
    const account = await api.account();
    const { id } = await account.create();
    for (const [method, path] of [
      ['GET', '/tags'],
      ['DELETE', `/qr-codes/${id}`],
    ] as const) {
      for (const sent of [0, MIB + 1]) {
        const parts = [
          head(account.apiKey, path, [`Content-Length: ${MIB + 1}`]).replace(/^POST/, method),
          'x'.repeat(sent),
        ];
        const answered = await exchange(api.signpost.url, parts, { readLast: sent > 0 });
        expect([answered.status, /\r\nconnection: close/i.test(answered.head)]).toEqual([413, true]);
      }
    }
    const chunked = head(account.apiKey, `/qr-codes/${id}`, ['Transfer-Encoding: chunked']).replace(/^POST/, 'DELETE');
    const chunks = Array.from({ length: 17 }, () => `10000\r\n${'x'.repeat(0x10000)}\r\n`);
    expect((await exchange(api.signpost.url, [chunked, ...chunks, '0\r\n\r\n'])).status).toBe(413);
    expect((await account.call('GET', `/qr-codes/${id}`)).status).toBe(200);
    // One of 1 MiB is ignored.
    expect((await exchange(api.signpost.url, [chunked, ...chunks.slice(1), '0\r\n\r\n'])).status).toBe(200);
  });

  test('413: a body without a `Content-Length` is rejected while reading, and the answer arrives', async () => {
    const { apiKey } = await api.account();
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const parts = [
      head(apiKey, '/qr-codes', ['Transfer-Encoding: chunked']),
      ...Array.from({ length: 64 }, () => chunk),
      '0\r\n\r\n',
    ];
    const answered = await exchange(api.signpost.url, parts);
    expect(answered.status).toBe(413);
    expect(answered.head).toMatch(/\r\nconnection: close/i);
    expect(JSON.parse(answered.body)).toEqual({ error: expect.any(String) });
  });

  test('a 413 reaches a client that sends its whole body first', async () => {
    const { apiKey } = await api.account();
    const parts = [
      head(apiKey, '/qr-codes', [`Content-Length: ${8 * MIB}`]),
      ...Array.from({ length: 8 }, () => 'x'.repeat(MIB)),
    ];
    expect((await exchange(api.signpost.url, parts, { readLast: true })).status).toBe(413);
  });

  test('a chunked body is accepted', async () => {
    const { apiKey } = await api.account();
    const json = JSON.stringify({ target_url: TARGET });
    const chunks = [...json].map((character) => `1\r\n${character}\r\n`);
    const parts = [
      head(apiKey, '/qr-codes', ['Transfer-Encoding: chunked', 'Connection: close']),
      ...chunks,
      '0\r\n\r\n',
    ];
    expect((await exchange(api.signpost.url, parts)).status).toBe(201);
  });
});

describe('invalid HTTP', () => {
  test.each([
    ['no request line', 'hello\r\n\r\n'],
    ['two lengths', 'POST /api/v1/qr-codes HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
    ['a header with a line feed', 'GET /api/v1/tags HTTP/1.1\r\nHost: a\r\nA: b\nc\r\n\r\n'],
    ['HTTP/1.1 without `Host`', 'GET /api/v1/tags HTTP/1.1\r\n\r\n'],
    ['a body without `Host`', 'POST /api/v1/qr-codes HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}'],
    ['a tunnel', 'CONNECT localhost:443 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['headers of 64 KiB', `GET /api/v1/tags HTTP/1.1\r\nHost: a\r\nIdempotency-Key: ${'k'.repeat(65_536)}\r\n\r\n`],
  ])('400 in the shape of every error: %s', async (_what, bytes) => {
    const answered = await exchange(api.signpost.url, [bytes]);
    expect(answered.status).toBe(400);
    expect(JSON.parse(answered.body)).toEqual({ error: expect.any(String) });
    expect(answered.head).toMatch(/\r\nx-request-id: \S/i);
  });
});

describe('unusual HTTP', () => {
  const request = (line: string, apiKey: string, ...more: string[]) =>
    exchange(api.signpost.url, [[line, `Authorization: Bearer ${apiKey}`, ...more, '', ''].join('\r\n')]);

  test.each([
    ['HTTP/1.0 without `Host`', 'GET /api/v1/tags HTTP/1.0', []],
    ['an unknown expectation', 'GET /api/v1/tags HTTP/1.1', ['Host: a', 'Expect: the-unexpected']],
    ['an offer to upgrade', 'GET /api/v1/tags HTTP/1.1', ['Host: a', 'Connection: upgrade', 'Upgrade: websocket']],
    ['the absolute form of a target', 'GET http://a/api/v1/tags HTTP/1.1', ['Host: a']],
    ['a GET with a body', 'GET /api/v1/tags HTTP/1.1', ['Host: a', 'Transfer-Encoding: chunked', '', '0']],
  ])('200: %s', async (_what, line, more) => {
    const { apiKey } = await api.account();
    const { status, body } = await request(line, apiKey, ...more);
    expect([status, body]).toEqual([200, '{"success":true,"data":[]}']);
  });

  test('201: a body that was announced by `Expect: 100-continue`', async () => {
    const { apiKey } = await api.account();
    const json = JSON.stringify({ target_url: TARGET });
    const head = ['Host: a', 'Expect: 100-continue', 'Connection: close', `Content-Length: ${json.length}`, '', json];
    expect((await request('POST /api/v1/qr-codes HTTP/1.1', apiKey, ...head)).status).toBe(201);
  });

  test('404: `OPTIONS *` names no resource', async () => {
    const { apiKey } = await api.account();
    const { status, body } = await request('OPTIONS * HTTP/1.1', apiKey, 'Host: a');
    expect(status).toBe(404);
    expect(Object.keys(JSON.parse(body))).toEqual(['error']);
  });
});
