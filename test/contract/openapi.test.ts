import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { beforeAll, describe, expect, test } from 'vitest';
import type { OpenApiDocument, Schema } from '../../gateway/rest/openapi-types.ts';
import { type Account, contract, type One } from './client.ts';

const api = contract();

/** The statuses that the contract gives each operation, and those that every endpoint has. */
const CONTRACT = {
  'GET /api/v1/qr-codes': [200, 400, 403],
  'POST /api/v1/qr-codes': [201, 400, 403, 409, 413],
  'GET /api/v1/qr-codes/{id}': [200, 404],
  'PATCH /api/v1/qr-codes/{id}': [200, 400, 404, 409, 413],
  'DELETE /api/v1/qr-codes/{id}': [200, 404],
  'GET /api/v1/qr-codes/{id}/analytics': [200, 404],
  'GET /api/v1/qr-codes/{id}/image': [200, 304, 400, 403, 404, 409],
  'GET /api/v1/batches': [200, 403],
  'POST /api/v1/batches': [201, 202, 400, 403, 409, 413],
  'GET /api/v1/batches/{id}': [200, 400, 403, 404],
  'GET /api/v1/folders': [200],
  'GET /api/v1/tags': [200],
  'GET /api/v1/openapi': [200],
};
const EVERYWHERE = [401, 429, 500, 503];

let account: Account;
let document: OpenApiDocument;

beforeAll(async () => {
  account = await api.account();
  const answered = await account.call<OpenApiDocument>('GET', '/openapi');
  expect(answered.status).toBe(200);
  document = answered.body;
});

function operations() {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      operation,
    })),
  );
}

/** Validates with the document's own components; what a schema does not name is an error. */
function validator(schema: Schema) {
  const strict = JSON.parse(
    JSON.stringify({ ...schema, components: document.components }, (_key, value) =>
      value?.type === 'object' && value.properties ? { additionalProperties: false, ...value } : value,
    ),
  );
  delete strict.additionalProperties;
  return new Ajv2020({ strict: false, allErrors: true, validateFormats: false }).compile(strict);
}

describe('GET /api/v1/openapi', () => {
  test('is OpenAPI 3.1 of version 1.3.0 and passes the linter', async () => {
    expect(document.openapi).toBe('3.1.0');
    expect(document.info.version).toBe('1.3.0');
    const config = await createConfig({ extends: ['recommended'], rules: { 'no-server-example.com': 'off' } });
    const problems = await lintFromString({ source: JSON.stringify(document), config });
    expect(problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`)).toEqual(
      [],
    );
  });

  test('has every operation of the contract with every status it lists, and no more', () => {
    const listed = operations().map(({ name, operation }) => [
      name,
      Object.keys(operation.responses).map(Number).sort(),
    ]);
    const expected = Object.entries(CONTRACT).map(([name, statuses]) => [name, [...statuses, ...EVERYWHERE].sort()]);
    expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(expected));
  });

  test('has an example for every operation that fits its schema', () => {
    for (const { name, operation } of operations()) {
      const contents = [operation.requestBody, ...Object.values(operation.responses)].map((part) => part?.content);
      const examples = contents.flatMap((content) => Object.entries(content ?? {}));
      expect(examples.length).toBeGreaterThan(0);
      for (const [type, { schema, example }] of examples) {
        if (type.startsWith('image/')) continue;
        const validate = validator(schema ?? {});
        expect([name, validate(example), validate.errors]).toEqual([name, true, null]);
      }
    }
  });

  test('describes what the endpoints really answer', async () => {
    const { id } = await account.create({ name: 'x', folder: 'Berlin', tags: ['a'] });
    const calls = [
      ['GET /api/v1/qr-codes', 200],
      ['POST /api/v1/qr-codes', 400],
      ['GET /api/v1/qr-codes/{id}', 200],
      ['PATCH /api/v1/qr-codes/{id}', 200],
      ['GET /api/v1/qr-codes/{id}/analytics', 200],
      ['GET /api/v1/qr-codes/{id}/image', 200],
      ['GET /api/v1/folders', 200],
      ['GET /api/v1/tags', 200],
      ['GET /api/v1/openapi', 200],
      ['DELETE /api/v1/qr-codes/{id}', 200],
      ['GET /api/v1/qr-codes/{id}', 404],
    ] as const;
    for (const [name, expected] of calls) {
      const [method = '', path = ''] = name.split(' ');
      const request = method === 'PATCH' ? { json: { paused: true } } : {};
      const answered = await account.call<unknown>(method, path.replace('/api/v1', '').replace('{id}', id), request);
      expect([name, answered.status]).toEqual([name, expected]);
      const described = operations().find((operation) => operation.name === name)?.operation.responses[expected];
      for (const header of Object.keys(described?.headers ?? {})) {
        if (header !== 'Idempotent-Replay')
          expect([name, header, answered.headers.has(header)]).toEqual([name, header, true]);
      }
      const content = described?.content?.['application/json'];
      if (!content) continue;
      const validate = validator(content.schema ?? {});
      expect([name, validate(answered.body), validate.errors]).toEqual([name, true, null]);
    }
    const created = await account.call<One>('POST', '/qr-codes', { json: { target_url: 'https://example.com' } });
    const schema = document.paths['/api/v1/qr-codes']?.post?.responses['201']?.content?.['application/json']?.schema;
    expect(validator(schema ?? {})(created.body)).toBe(true);
  });
});

describe('GET /docs', () => {
  test('the reference for people is open to all, complete, and needs nothing from elsewhere', async () => {
    const { status, headers, body } = await api.call<string>('GET', '/docs');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^']+';/);
    for (const { operation, path } of operations()) {
      expect(body).toContain(`id="${operation.operationId}"`);
      expect(body).toContain(path);
    }
    expect(body).not.toMatch(/<script|<link|<img|src=|url\(/);
  });
});
