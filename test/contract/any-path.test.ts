import { METHODS } from 'node:http';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { anyHeaders, anyQuery, encoded, latin1 } from './arbitrary.ts';
import { type Account, contract } from './client.ts';
import { exchange, headersOf } from './raw-http.ts';

const api = contract();

const RUNS = { numRuns: 150 };

/** An account that is replaced by a new one before its burst limit is reached. */
let current: Promise<Account> | undefined;
let left = 0;
function account(): Promise<Account> {
  if (left-- > 0 && current) return current;
  left = 100;
  current = api.account({ plan: Plan.ENTERPRISE });
  return current;
}

/** Sends a raw request without a body; returns its status after checking the shape of the answer. */
async function statusOf(method: string, target: string, headers: readonly (readonly [string, string])[]) {
  const head = [`${method} ${target} HTTP/1.1`, 'Host: a', ...headers.map(([name, value]) => `${name}: ${value}`)];
  const bytes = [...head, 'Connection: close', '', ''].join('\r\n');
  const answer = await exchange(api.signpost.url, [bytes], { encoding: 'latin1', withoutBody: method === 'HEAD' });
  expect(headersOf(answer).get('x-request-id')).toMatch(/^[\x21-\x7e]{1,128}$/);
  if (answer.status >= 400 && method !== 'HEAD') {
    expect(JSON.parse(Buffer.from(answer.body, 'latin1').toString())).toEqual({ error: expect.stringMatching(/\S/) });
  }
  return answer.status;
}

test('any method, path and query under /api get an answer of the documented shape', async () => {
  // A POST to an endpoint would create, and CONNECT has no path.
  const methods = METHODS.filter((method) => method !== 'POST' && method !== 'CONNECT');
  const known = ['qr-codes', 'batches', 'folders', 'tags', 'image', 'analytics', 'openapi'];
  const odd = ['..', '.', '', '%00', '%', '%ff', '%2e%2e', '%2f', ';a=b', '\xff'];
  const segment = fc.oneof(fc.constantFrom(...known), fc.constantFrom(...odd), encoded);
  const version = fc.constantFrom('', '/v1', '/v1', '/v1', '/v2', '//v1', '/v1/');
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.constant('GET'), fc.constantFrom(...methods)),
      version,
      fc.array(segment, { maxLength: 4 }),
      anyQuery,
      async (method, prefix, segments, query) => {
        const { apiKey } = await account();
        const target = `/api${prefix}/${segments.join('/')}?${query}`;
        const status = await statusOf(method, target, [['Authorization', `Bearer ${apiKey}`]]);
        // Anything but an endpoint gives one of these; endpoints have their own statuses.
        expect([200, 204, 400, 404, 405]).toContain(status);
      },
    ),
    RUNS,
  );
});

test('anything but a valid key is a 401', async () => {
  const paths = Object.keys(api.document.paths).map((path) => path.replace('{id}', 'qr_1'));
  const presented = fc.oneof(
    latin1(0x20, 80).map((text) => text.replaceAll('\x7f', '')),
    latin1(0x20, 60).map((text) => `Bearer ${text.replaceAll('\x7f', '')}`),
    fc.stringMatching(/^Bearer sk_live_[0-9A-Za-z]{43}$/),
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...paths), presented, anyHeaders, async (path, authorization, headers) => {
      expect(await statusOf('GET', path, [['Authorization', authorization], ...headers])).toBe(401);
    }),
    RUNS,
  );
});
