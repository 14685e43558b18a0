import { expect } from 'vitest';
import {
  type ApiError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  ServerError,
  Signpost,
  TooLargeError,
} from '../../sdk/typescript/src/index.ts';
import type { Request } from '../contract/client.ts';

const ERRORS: Readonly<Record<number, typeof ApiError>> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  413: TooLargeError,
  429: RateLimitError,
  503: ServerError,
};

/** `operationId status` of every answer that came through the SDK. */
export const answeredThroughSdk = new Set<string>();

// Tests send what the types forbid.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

interface Operation {
  readonly id: string;
  /** Calls the operation; the result must equal what `expected` makes of the response's body. */
  run(signpost: Signpost, id: string, query: Any, request: Request): Promise<unknown>;
  expected?(body: Any): unknown;
}

const data = (body: Any) => body.data;
const created = ({ data, warnings = [] }: Any) => ({ ...data, warnings });
const items = (body: Any) => ({ items: body.data, total: body.total, limit: body.pagination.limit });
const rows = (body: Any) => ({ ...items(body), items: body.data.rows });
const pageOf = async (listing: { page(): Promise<{ next: unknown }> }) => {
  const { next: _next, ...page } = await listing.page();
  return page;
};
const key = ({ headers }: Request) => {
  const idempotencyKey = headers?.['idempotency-key'];
  return idempotencyKey === undefined ? {} : { idempotencyKey };
};

const OPERATIONS: Readonly<Record<string, Operation>> = {
  'GET /qr-codes': { id: 'listCodes', run: (s, _id, query) => pageOf(s.codes.list(query)), expected: items },
  'POST /qr-codes': {
    id: 'createCode',
    run: (s, _id, _query, request) => s.codes.create(request.json as Any, key(request)),
    expected: created,
  },
  'GET /qr-codes/{id}': { id: 'getCode', run: (s, id) => s.codes.get(id), expected: data },
  'PATCH /qr-codes/{id}': {
    id: 'updateCode',
    run: (s, id, _query, request) => s.codes.update(id, request.json as Any),
    expected: data,
  },
  'DELETE /qr-codes/{id}': { id: 'deleteCode', run: (s, id) => s.codes.delete(id), expected: data },
  'GET /qr-codes/{id}/analytics': {
    id: 'getCodeAnalytics',
    run: (s, id, query) => s.codes.analytics(id, query),
    expected: data,
  },
  'GET /qr-codes/{id}/image': {
    id: 'getCodeImage',
    run: async (s, id, query) => Buffer.from(await s.codes.image(id, query)).toString(),
    expected: (body) => body,
  },
  'GET /batches': { id: 'listBatches', run: (s, _id, query) => pageOf(s.batches.list(query)), expected: items },
  'POST /batches': {
    id: 'createBatch',
    run: (s, _id, _query, request) => s.batches.create(request.json as Any, key(request)),
    expected: created,
  },
  'GET /batches/{id}': {
    id: 'getBatch',
    run: (s, id, query) => pageOf(s.batches.rows(id, { limit: undefined, ...query })),
    expected: rows,
  },
  'GET /folders': { id: 'listFolders', run: (s) => s.folders.list(), expected: data },
  'GET /tags': { id: 'listTags', run: (s) => s.tags.list(), expected: data },
  'GET /openapi': { id: 'getOpenApi', run: (s) => s.openapi(), expected: (body) => body },
};

/**
 * Sends a request of a contract test through the TypeScript SDK, and checks that what it returns or throws is what the
 * response says. Returns the response; undefined if the SDK can't send such a request: another path or method, a body
 * that is no JSON object, other headers.
 */
export async function callThroughSdk(
  baseUrl: string,
  method: string,
  path: string,
  request: Request,
): Promise<Response | undefined> {
  const { authorization = '', 'idempotency-key': idempotencyKey, ...otherHeaders } = request.headers ?? {};
  const apiKey = /^Bearer ([!-~]+)$/.exec(authorization)?.[1];
  const [plain = '', search = ''] = path.split('?');
  const id = /^\/api\/v1\/(?:qr-codes|batches)\/([\w-]+)/.exec(plain)?.[1] ?? '';
  const template = plain.replace('/api/v1', '').replace(/^(\/[^/]+\/)[^/]+/, '$1{id}');
  const operation = OPERATIONS[`${method} ${template}`];
  const isObject = typeof request.json === 'object' && request.json !== null && !Array.isArray(request.json);
  const takesBody = method === 'POST' || method === 'PATCH';
  if (!operation || !apiKey || Object.keys(otherHeaders).length > 0 || request.raw !== undefined) return undefined;
  if (takesBody !== isObject || template.includes('{id}') !== (id !== '') || idempotencyKey === '') return undefined;

  let answered: Response | undefined;
  const recordingFetch: typeof fetch = async (...args) => {
    const response = await fetch(...args);
    // Those of a response of fetch are immutable.
    answered = new Response(response.body, { status: response.status, headers: new Headers(response.headers) });
    return answered.clone();
  };
  const signpost = new Signpost({ apiKey, baseUrl, maxRetries: 0, fetch: recordingFetch });
  const parameters = new URLSearchParams(search);
  const query = Object.fromEntries(
    [...parameters.keys()].map((name) => {
      const values = parameters.getAll(name);
      return [name, values.length > 1 ? values : values[0]];
    }),
  );
  let result: unknown;
  let thrown: unknown;
  try {
    result = await operation.run(signpost, id, query, request);
  } catch (error) {
    thrown = error;
  }
  if (!answered) throw thrown;
  answeredThroughSdk.add(`${operation.id} ${answered.status}`);
  const text = await answered.clone().text();
  if (answered.ok) {
    if (thrown) throw thrown;
    const body = operation.id === 'getCodeImage' ? text : JSON.parse(text);
    expect(result).toEqual(operation.expected?.(body));
  } else {
    expectThrown(thrown, answered, JSON.parse(text));
  }
  // The SDK has added a key.
  if (method === 'POST' && idempotencyKey === undefined) answered.headers.delete('idempotent-replay');
  return answered;
}

function expectThrown(thrown: unknown, { status, headers }: Response, body: Any): void {
  expect(thrown).toBeInstanceOf(ERRORS[status]);
  const { error: message, ...more } = body;
  expect(thrown).toMatchObject({ status, message, requestId: headers.get('x-request-id'), ...more });
  const field = /^([a-z_]+)[^:]*: /.exec(message)?.[1];
  if (status === 400 && field !== undefined) expect((thrown as ApiError).field).toMatch(new RegExp(`^${field}`));
}
