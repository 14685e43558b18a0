import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { headReader } from './read-head.ts';

const readHead = headReader('CF-IPCountry');
const NAMES = [
  ...['Host', 'User-Agent', 'REFERER', 'Accept-Language', 'accept-encoding', 'Cookie', 'Sec-Purpose', 'X-Request-Id'],
  ...['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Host', 'CF-IPCountry', 'Connection', 'Content-Length', 'TE'],
  ...['Transfer-Encoding', 'Expect', 'Upgrade', 'Keep-Alive', 'X-Héader', 'Bad Name', ''],
];

function readAll(text: string) {
  return readHead(Buffer.from(text, 'latin1'));
}

function request(lines: readonly string[]): string {
  return [...lines, '', ''].join('\r\n');
}

const WHOLE = ['GET /r/Ab3dE9k HTTP/1.1', 'Host: signpost.example', 'User-Agent: a phone'];

describe('a head is read', () => {
  test('with the headers of a scan, and no others', () => {
    const text = request([...WHOLE, 'accept: */*', 'REFERER:https://a.example/ \t', 'cf-ipcountry: DE', 'x: y']);
    expect(readAll(`${text}GET /next`)).toEqual({
      method: 'GET',
      shortCode: 'Ab3dE9k',
      query: '',
      last: false,
      end: text.length,
      headers: {
        host: 'signpost.example',
        'user-agent': 'a phone',
        referer: 'https://a.example/',
        'cf-ipcountry': 'DE',
      },
    });
  });

  test.each([
    ['GET /r/Ab3dE9k/ HTTP/1.1', 'GET', ''],
    ['GET /r/Ab3dE9k? HTTP/1.1', 'GET', ''],
    ['GET /r/Ab3dE9k?utm_source=poster HTTP/1.1', 'GET', 'utm_source=poster'],
    ['HEAD /r/Ab3dE9k/?a HTTP/1.1', 'HEAD', 'a'],
  ])('with any form of its path: %s', (line, method, query) => {
    expect(readAll(request([line, ...WHOLE.slice(1)]))).toMatchObject({ method, shortCode: 'Ab3dE9k', query });
  });
});

test('a request with Connection: close is read if no bytes follow it', () => {
  const text = request([...WHOLE, 'Connection: Close']);
  expect(readAll(text)).toMatchObject({ shortCode: 'Ab3dE9k', last: true, end: text.length });
  expect(readAll(`${text}G`)).toBeUndefined();
});

test.each([
  ['another method', ['POST /r/Ab3dE9k HTTP/1.1', ...WHOLE.slice(1)]],
  ['another path', ['GET /api/v1/qr-codes HTTP/1.1', ...WHOLE.slice(1)]],
  ['more of a path', ['GET /r/Ab3dE9k/more HTTP/1.1', ...WHOLE.slice(1)]],
  ['no short code', ['GET /r/ HTTP/1.1', ...WHOLE.slice(1)]],
  ['a long short code', [`GET /r/${'a'.repeat(33)} HTTP/1.1`, ...WHOLE.slice(1)]],
  ['an older version', ['GET /r/Ab3dE9k HTTP/1.0', ...WHOLE.slice(1)]],
  ['no host', [WHOLE[0] ?? '']],
  ['two hosts', [...WHOLE, 'host: other.example']],
  ['a body', [...WHOLE, 'content-length: 5']],
  ['a body of nothing', [...WHOLE, 'Content-Length: 0']],
  ['a body in chunks', [...WHOLE, 'transfer-encoding: chunked']],
  ['another Connection option', [...WHOLE, 'Connection: close, x']],
  ['an upgrade', [...WHOLE, 'Connection: upgrade', 'Upgrade: websocket']],
  ['a folded line', [...WHOLE, 'x: y', ' z']],
  ['a space before the colon', [...WHOLE, 'x : y']],
  ['a control character', [...WHOLE, 'x: \u0000']],
  ['a byte that is not ASCII', [...WHOLE, 'x: é']],
  ['too much', [...WHOLE, `x: ${'y'.repeat(17_000)}`]],
])('%s is left to Node', (_, lines) => {
  expect(readAll(request(lines))).toBeUndefined();
});

test('an incomplete head is left to Node, wherever it is cut', () => {
  const text = request(WHOLE);
  for (let length = 0; length < text.length; length++) expect(readAll(text.slice(0, length))).toBeUndefined();
  expect(readAll(text.replaceAll('\r\n', '\n'))).toBeUndefined();
});

describe('what is read', () => {
  /** The pending result of Node's parser. */
  let parsed: (request: IncomingMessage | undefined) => void = () => {};
  const server = createServer((incoming, response) => {
    parsed(incoming);
    response.end();
  });
  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket) => {
    // The other errors belong to connections that the test has closed.
    if (code?.startsWith('HPE_')) parsed(undefined);
    socket.destroy();
  });
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
  afterAll(() => {
    server.close();
    server.closeAllConnections();
  });

  async function byNode(text: string): Promise<IncomingMessage | undefined> {
    const { port } = server.address() as AddressInfo;
    const { promise, resolve } = Promise.withResolvers<IncomingMessage | undefined>();
    parsed = resolve;
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(text, 'latin1');
    const incoming = await promise;
    socket.destroy();
    return incoming;
  }

  const value = fc.oneof(
    fc.constantFrom('a', 'keep-alive', 'Keep-Alive', 'close', '  a b\t', 'a, b', '5', 'é', 'a\u0001b', ''),
    fc.string({ maxLength: 40 }),
  );
  const lines = fc
    .array(fc.tuple(fc.constantFrom(...NAMES), value), { maxLength: 6 })
    .map((pairs) => pairs.map(([name, text]) => `${name}: ${text}`));
  const path = fc.oneof(
    fc.constantFrom('/r/Ab3dE9k', '/r/Ab3dE9k/', '/r/a/b', '/r/%41', '/r/Ab3dE9k?a=b', '/r/a#b', '/R/a', '/r/a b'),
    fc.string({ maxLength: 20 }).map((query) => `/r/Ab3dE9k?${query}`),
  );

  test('is what Node’s parser reads', async () => {
    let read = 0;
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('GET', 'HEAD'), path, lines, async (method, url, more) => {
        const text = request([`${method} ${url} HTTP/1.1`, 'host: signpost.example', ...more]);
        const head = readAll(text);
        if (!head) return;
        read++;
        const incoming = await byNode(text);
        expect(incoming).toMatchObject({ method: head.method, httpVersion: '1.1', complete: true });
        expect(/^\/r\/([0-9A-Za-z]{1,32})\/?(?:\?|$)/.exec(incoming?.url ?? '')?.[1]).toBe(head.shortCode);
        for (const [name, expected] of Object.entries(head.headers)) expect(incoming?.headers[name]).toBe(expected);
      }),
      { numRuns: 2_000 },
    );
    // Otherwise the test would prove nothing.
    expect(read).toBeGreaterThan(200);
  });
});
