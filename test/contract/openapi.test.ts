import { setImmediate as turn } from 'node:timers/promises';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { describe, expect, test } from 'vitest';
import { contract } from './client.ts';
import { operationsOf, strictly } from './openapi-validation.ts';

const api = contract();

/** The statuses of each operation according to the contract, and those common to all endpoints. */
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
  'GET /api/v1/openapi': [200, 304],
};
const EVERYWHERE = [401, 429, 500, 503];

const operations = () => operationsOf(api.document);

describe('GET /api/v1/openapi', () => {
  test('is OpenAPI 3.1 of version 1.3.0 and passes the linter', async () => {
    const { document } = api;
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

  test('304 while `If-None-Match` has the current entity tag; a key is needed and the request counted', async () => {
    const account = await api.account();
    const first = await account.call('GET', '/openapi');
    const tag = first.headers.get('etag') ?? '';
    for (const field of [tag, `"other", W/${tag}`, '*']) {
      const { status, headers, body } = await account.call('GET', '/openapi', { headers: { 'if-none-match': field } });
      expect([status, body, headers.get('etag')]).toEqual([304, '', tag]);
    }
    const last = await account.call('GET', '/openapi', { headers: { 'if-none-match': '"other"' } });
    expect([last.status, last.body]).toEqual([200, first.body]);
    expect(last.headers.get('x-ratelimit-remaining')).toBe(`${Number(first.headers.get('x-ratelimit-remaining')) - 4}`);
    const unauthenticated = await api.call('GET', '/api/v1/openapi', { headers: { 'if-none-match': tag } });
    expect(unauthenticated.status).toBe(401);
  });

  test('has a valid example for every operation', () => {
    for (const { name, operation } of operations()) {
      const contents = [operation.requestBody, ...Object.values(operation.responses)].map((part) => part?.content);
      const examples = contents.flatMap((content) => Object.entries(content ?? {}));
      expect(examples.length).toBeGreaterThan(0);
      for (const [type, { schema, example, examples: several }] of examples) {
        // OpenAPI describes binary content only by its type.
        if (type === 'image/png') continue;
        const validate = strictly(api.document, schema ?? {});
        for (const value of several ? Object.values(several).map((each) => each.value) : [example]) {
          expect([name, validate(value), validate.errors]).toEqual([name, true, null]);
        }
      }
    }
  });

  test('has no format for targets, which are stored as they were sent', async () => {
    const account = await api.account();
    const target_url = 'https://bücher.example/100%';
    expect((await account.create({ target_url })).target_url).toBe(target_url);
    const formats = [...JSON.stringify(api.document).matchAll(/"target_url":\{[^{}]*"format":[^{}]*\}/g)];
    expect(formats).toEqual([]);
  });

  test('is applied to every answer of the contract tests', async () => {
    // Validating the document has blocked the event loop for seconds: keep-alive connections that the server closed
    // meanwhile must be noticed before one of them is reused.
    for (let turns = 0; turns < 3; turns++) await turn();
    const account = await api.account();
    const { id } = await account.create();
    const { headers, body } = await account.call('GET', `/qr-codes/${id}`);
    const answer = { method: 'GET', path: `/api/v1/qr-codes/${id}`, withKey: false, status: 200, headers, body };
    const without = (name: string) => {
      const fewer = new Headers(headers);
      fewer.delete(name);
      return fewer;
    };
    const expectProblem = (change: object, problem: RegExp) =>
      expect(() => api.expectDescribed({ ...answer, ...change })).toThrow(problem);
    api.expectDescribed(answer);
    expectProblem({ status: 418 }, /does not list 418/);
    expectProblem({ status: 404 }, /must have required property 'error'/);
    expectProblem({ body: { ...body, more: 1 } }, /must NOT have additional properties/);
    expectProblem({ headers: without('x-ratelimit-reset') }, /without X-RateLimit-Reset/);
    expectProblem({ headers: without('content-type') }, /was/);
    expectProblem({ method: 'POST', path: '/api/v1/batches' }, /does not list 200/);
  });
});
