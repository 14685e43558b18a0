import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BatchJson } from '../../common/contract/batch-json.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { anyBody, anyHeaders, anyQuery, encoded } from './arbitrary.ts';
import { type Account, contract } from './client.ts';
import { operationsOf } from './openapi-validation.ts';
import { exchange, headersOf } from './raw-http.ts';

/**
 * Arbitrary requests to every endpoint, sent as bytes so that no client corrects them: never a 5xx, never a hang,
 * always what the OpenAPI document describes, and no change except on success.
 */
const api = contract('file');

const RUNS = { numRuns: 60 };

/** The operations of the contract. */
const OPERATIONS = [
  'GET /api/v1/qr-codes',
  'POST /api/v1/qr-codes',
  'GET /api/v1/qr-codes/{id}',
  'PATCH /api/v1/qr-codes/{id}',
  'DELETE /api/v1/qr-codes/{id}',
  'GET /api/v1/qr-codes/{id}/analytics',
  'GET /api/v1/qr-codes/{id}/image',
  'GET /api/v1/batches',
  'POST /api/v1/batches',
  'GET /api/v1/batches/{id}',
  'GET /api/v1/folders',
  'GET /api/v1/tags',
  'GET /api/v1/openapi',
];

let pool: pg.Pool;
beforeAll(() => {
  pool = new pg.Pool({ connectionString: api.signpost.databaseUrl });
});
afterAll(() => pool.end());

/** All data that calls can change, except idempotency records and meters. */
async function state(): Promise<unknown> {
  const tables = [
    'codes',
    'code_tags',
    'code_counts',
    'folders',
    'tags',
    'batches',
    'batch_rows',
    'api_keys',
    'domains',
  ];
  const digests = tables.map((table) => `(select md5(string_agg(t::text, '|' order by t::text)) from ${table} t)`);
  const { rows } = await pool.query(`select ${digests.map((digest, nth) => `${digest} as d${nth}`).join(', ')}`);
  return rows[0];
}

interface Subject {
  readonly account: Account;
  readonly codes: string[];
  readonly batch: string;
}

/** An account with codes and a batch, replaced by a new one before its burst limit is reached. */
let current: Promise<Subject> | undefined;
let left = 0;
function subject(): Promise<Subject> {
  if (left-- > 0 && current) return current;
  left = 100;
  current = (async () => {
    const account = await api.account({ plan: Plan.ENTERPRISE });
    const codes = [await account.create({ folder: 'Berlin', tags: ['menu'] }), await account.create()];
    const json = { rows: [{ target_url: 'https://example.com' }] };
    const { body } = await account.call<{ data: BatchJson }>('POST', '/batches', { json });
    return { account, codes: codes.map(({ id }) => id), batch: body.data.id };
  })();
  return current;
}

const id = fc.oneof(
  { arbitrary: fc.constant(undefined), weight: 3 },
  fc.oneof(
    encoded,
    fc.constantFrom('%00', '%2f', '..%2f', 'qr_', `qr_${'z'.repeat(26)}`, 'batch_01kagcpn9te5gvjxq1rmm30w4h'),
  ),
);

test('are all documented endpoints', () => {
  expect(operationsOf(api.document).map(({ name }) => name)).toEqual(OPERATIONS);
});

describe.each(OPERATIONS)('%s', (name) => {
  const [method = '', template = ''] = name.split(' ');

  test('answers any request as documented, and failures change nothing', async () => {
    let before = await state();
    await fc.assert(
      fc.asyncProperty(id, anyQuery, anyHeaders, anyBody, async (given, search, more, payload) => {
        const had = left;
        const { account, codes, batch } = await subject();
        if (had <= 0) before = await state();
        const known = template.includes('batches') ? batch : (codes[0] ?? '');
        if (method === 'DELETE') codes.shift();
        // An empty id would be a different path.
        const path = template.replace('{id}', () => given || known || 'none-left');
        const head = [
          `${method} ${path}?${search} HTTP/1.1`,
          'Host: localhost',
          `Authorization: Bearer ${account.apiKey}`,
          `Content-Length: ${payload.length}`,
          ...more.map(([header, value]) => `${header}: ${value}`),
          '',
          '',
        ].join('\r\n');
        const answer = await exchange(api.signpost.url, [`${head}${payload.toString('latin1')}`], {
          encoding: 'latin1',
        });
        const withKey = more.some(([header]) => header === 'Idempotency-Key');
        const answered = headersOf(answer);
        const isJson = answered.get('content-type')?.startsWith('application/json');
        const body: unknown = isJson ? JSON.parse(Buffer.from(answer.body, 'latin1').toString()) : answer.body;
        expect(answer.status).toBeLessThan(500);
        api.expectDescribed({ method, path, withKey, status: answer.status, headers: answered, body });
        if (answer.status >= 400) {
          // No internal details: no stack, SQL, address or package.
          const { error } = body as { error: string };
          expect(error).toMatch(/\S/);
          expect(error).not.toMatch(
            /node_modules|\.ts\b|\bat \/|select |insert |ECONN|127\.0\.0\.1|postgres|grpc|proto/i,
          );
        }
        const after = await state();
        if (answer.status >= 400 || method === 'GET') expect(after).toEqual(before);
        before = after;
      }),
      RUNS,
    );
  });
});
