import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { type Account, contract, type Failure } from './client.ts';

const api = contract();

const RUNS = { numRuns: 150 };

/** An account that is exchanged for a fresh one before its burst limit is reached. */
function accounts(): () => Promise<Account> {
  let current: Promise<Account> | undefined;
  let left = 0;
  return () => {
    if (left-- === 0 || !current) {
      left = 100;
      current = api.account({ plan: Plan.ENTERPRISE });
    }
    return current;
  };
}

const next = accounts();

/** Statuses of bad input and of what happened to be right. */
const EXPECTED = [200, 201, 400, 404, 405, 409, 413];

async function expectSane(answer: Promise<{ status: number; headers: Headers; body: unknown }>): Promise<void> {
  const { status, headers, body } = await answer;
  expect(EXPECTED).toContain(status);
  expect(headers.get('x-request-id')).toMatch(/^[\x21-\x7e]{1,128}$/);
  if (status < 400) return;
  const { error, ...rest } = body as Failure;
  expect(error).toMatch(/\S/);
  expect(rest).toEqual({});
  // Nothing of the inside shows: no stack, no SQL, no address, no package.
  expect(error).not.toMatch(/node_modules|\.ts\b|\bat \/|select |insert |ECONN|127\.0\.0\.1|postgres|grpc|proto/i);
}

/** Strings with everything that breaks parsers: NUL, lone surrogates, controls, long runs. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    '',
    ' ',
    '\0',
    '\ud800',
    'none',
    'a'.repeat(5_000),
    '💥'.repeat(300),
    "'; drop table codes; --",
    '__proto__',
  ),
);

const value = fc.oneof(
  { arbitrary: text, weight: 4 },
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(null, true, false, 0, -1, 1e308, [], {}, [null], ['a', 5], [[]]),
);

const fields = fc.record(
  {
    target_url: fc.oneof(value, fc.webUrl(), fc.constant('https://example.com/')),
    name: value,
    paused: value,
    folder: value,
    tags: fc.oneof(value, fc.array(text, { maxLength: 25 })),
    campaign_type: value,
    domain_id: value,
    unknown: value,
  },
  { requiredKeys: [] },
);

test('POST /qr-codes: any JSON in any field is a 201 or a 400', async () => {
  await fc.assert(
    fc.asyncProperty(fields, async (json) => {
      await expectSane((await next()).call('POST', '/qr-codes', { json }));
    }),
    RUNS,
  );
});

test('PATCH /qr-codes/{id}: any JSON in any field is a 200 or a 400', async () => {
  const owner = await api.account({ plan: Plan.ENTERPRISE });
  const { id } = await owner.create();
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(fields, async (json) => {
      const account = runs++ < 100 ? owner : await next();
      await expectSane(account.call('PATCH', `/qr-codes/${id}`, { json }));
    }),
    RUNS,
  );
});

test('any bytes as a body, any Content-Type, any idempotency key are answered in shape', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('/qr-codes', '/qr-codes/qr_1'),
      fc.uint8Array({ maxLength: 200 }),
      fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)), maxLength: 80 }),
      fc.string({
        unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)),
        maxLength: 300,
      }),
      async (path, bytes, type, key) => {
        const headers = { 'content-type': type.replaceAll('\x7f', ''), 'idempotency-key': key.replaceAll('\x7f', '') };
        const method = path === '/qr-codes' ? 'POST' : 'PATCH';
        await expectSane((await next()).call(method, path, { raw: new Uint8Array(bytes), headers }));
      },
    ),
    RUNS,
  );
});

test('any query and any path under /api/v1 are answered in shape', async () => {
  const segment = fc.oneof(
    fc.constantFrom('qr-codes', 'batches-', 'folders', 'tags', 'image', 'analytics', '..', '%00', '%', '%ff', '%2e%2e'),
    fc.string({ unit: 'grapheme', maxLength: 30 }).map((part) => encodeURIComponent(part.toWellFormed())),
  );
  const parameter = fc.constantFrom(
    'limit',
    'offset',
    'cursor',
    'folder',
    'tag',
    'period',
    'format',
    'size',
    '__proto__',
    '',
  );
  const given = fc.oneof(
    fc.constantFrom('0', '-1', '1e9', '9'.repeat(40), 'NaN', '%', '%00', '%ff%fe', 'none', '+', '[]', '"'),
    fc.string({ unit: 'binary', maxLength: 30 }).map((part) => encodeURIComponent(part.toWellFormed())),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('GET', 'HEAD', 'DELETE', 'PUT'),
      fc.oneof(
        fc
          .constantFrom('qr-codes', 'qr-codes/qr_01kagcpn9te5gvjxq1rmm30w4h/image', 'qr-codes/x/analytics', 'tags')
          .map((path) => [path]),
        fc.array(segment, { minLength: 1, maxLength: 4 }),
      ),
      fc.array(fc.tuple(parameter, given), { maxLength: 5 }),
      async (method, path, query) => {
        const search = query.map(([name, text]) => `${name}=${text}`).join('&');
        const answer = (await next()).call<unknown>(method, `/${path.join('/')}?${search}`);
        if (method === 'HEAD') expect(EXPECTED).toContain((await answer).status);
        else await expectSane(answer);
      },
    ),
    RUNS,
  );
});
