import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { decodeId } from '../../common/contract/ids.ts';
import { LOOPBACK } from '../../local/free-port.ts';
import { AccountsService, Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { servedDocument } from '../../sdk/generate/document.ts';
import {
  ApiError,
  ConflictError,
  ConnectionError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  ServerError,
  Signpost,
  SignpostError,
} from '../../sdk/typescript/src/index.ts';
import { splitRows } from '../../sdk/typescript/src/split-rows.ts';
import { contract, TARGET } from '../contract/client.ts';
import { internal } from '../contract/internal.ts';
import { expectRetried } from './expect-retried.ts';
import { startFaultyProxy } from './faulty-proxy.ts';

const run = promisify(execFile);
const api = contract();

test('is generated from the document that the service serves', () => {
  const expected = servedDocument();
  const { info, servers, ...document } = api.document;
  const { info: expectedInfo, servers: _, ...rest } = expected;
  expect(document).toEqual(rest);
  expect({ ...info, contact: undefined }).toEqual({ ...expectedInfo, contact: undefined });
  expect(servers).toEqual([{ url: api.signpost.url }]);
  expect(JSON.parse(readFileSync('sdk/openapi.json', 'utf8'))).toEqual(JSON.parse(JSON.stringify(expected)));
  const { version } = JSON.parse(readFileSync('sdk/typescript/package.json', 'utf8'));
  expect(version).toBe(info.version);
});

test('a round trip of every operation over failing connections creates everything once', async () => {
  const { apiKey } = await api.account({ plan: Plan.ENTERPRISE });
  const proxy = await startFaultyProxy(api.signpost.url);
  onTestFinished(() => proxy.close());
  const signpost = new Signpost({ apiKey, baseUrl: `${proxy.url}/` });

  const created = await signpost.codes.create({ target_url: TARGET, name: 'Tür', folder: 'Berlin', tags: ['a', ''] });
  expect(created).toMatchObject({ name: 'Tür', folder: { name: 'Berlin' }, warnings: [expect.any(String)] });
  expect(await signpost.codes.get(created.id)).toMatchObject({ short_code: created.short_code });
  expect(await signpost.codes.update(created.id, { folder: null, tags: ['a'], paused: true })).toMatchObject({
    name: 'Tür',
    folder: null,
    paused: true,
  });
  expect(await signpost.codes.analytics(created.id, { period: 7 })).toMatchObject({ period: 7, total_scans: 0 });
  expect(
    Buffer.from(await signpost.codes.image(created.id, { size: 200 }))
      .subarray(1, 4)
      .toString(),
  ).toBe('PNG');

  const rows = Array.from({ length: 7 }, (_, index) => ({
    target_url: `${TARGET}-${index}`,
    external_ref: `${index}`,
  }));
  const idempotencyKey = 'import of 2026-11-22'.replaceAll(' ', '-');
  const importRows = () =>
    Array.fromAsync(signpost.batches.createAll({ rows, name: 'Import', rowsPerBatch: 3 }, { idempotencyKey }));
  const batches = await importRows();
  expect(batches.map(({ counts }) => counts.total)).toEqual([3, 3, 1]);
  expect((await importRows()).map(({ id }) => id)).toEqual(batches.map(({ id }) => id));
  const [batch] = batches;
  expect((await signpost.batches.wait(batch?.id ?? '')).counts).toMatchObject({ created: 3 });
  const listed = await Array.fromAsync(signpost.batches.list({ limit: 2 }));
  expect(listed.map(({ id }) => id)).toEqual(batches.map(({ id }) => id).reverse());
  const refs = (await Array.fromAsync(signpost.batches.rows(batch?.id ?? '', { limit: 2 }))).map(
    (row) => row.external_ref,
  );
  expect(refs).toEqual(['0', '1', '2']);

  const codes = await Array.fromAsync(signpost.codes.list({ limit: 3 }));
  expect(new Set(codes.map(({ id }) => id)).size).toBe(8);
  expect((await signpost.codes.list({ tag: ['a', 'b'], folder: 'none' }).page()).total).toBe(1);
  expect(await signpost.codes.delete(created.id)).toEqual({ id: created.id, deleted: true });
  expect(await signpost.folders.list()).toMatchObject([{ name: 'Berlin', code_count: 0 }]);
  expect(await signpost.tags.list()).toMatchObject([{ name: 'a', code_count: 0 }]);
  expect(await signpost.openapi()).toMatchObject({ openapi: '3.1.0' });
  expectRetried(proxy.attempts);
});

test('an import that was refused at the limit of codes continues over failing connections once that is raised', async () => {
  const { id, apiKey } = await api.account({ overrides: { codeLimit: 4n } });
  const limitCodes = (codeLimit: bigint) =>
    internal(api.signpost, AccountsService, id).updateAccount({ overrides: { codeLimit } });
  const proxy = await startFaultyProxy(api.signpost.url);
  onTestFinished(() => proxy.close());
  const { batches } = new Signpost({ apiKey, baseUrl: proxy.url });
  const rows = Array.from({ length: 7 }, (_, index) => ({ target_url: TARGET, external_ref: `${index}` }));
  const importRows = () =>
    Array.fromAsync(batches.createAll({ rows, name: 'Refused', rowsPerBatch: 3 }, { idempotencyKey: 'refused' }));

  for (const codeLimit of [4n, 3n]) {
    await limitCodes(codeLimit);
    const refusal = { code: 'qr_limit_reached', limit: Number(codeLimit), used: 4 };
    await expect(importRows()).rejects.toMatchObject(refusal);
  }
  await limitCodes(7n);
  const concurrent = await Promise.allSettled([importRows(), importRows()]);
  for (const run of concurrent) if (run.status === 'rejected') expect(run.reason).toBeInstanceOf(ConflictError);
  const imported = await importRows();
  const completed = await Promise.all(imported.map((batch) => batches.wait(batch.id)));
  expect(completed.map(({ counts }) => [counts.created, counts.skipped])).toEqual([
    [3, 0],
    [1, 2],
    [1, 0],
  ]);

  // As documented.
  const skipped = [];
  for await (const { index } of batches.rows(imported[1]?.id ?? '', { status: 'skipped' }))
    skipped.push(...rows.slice(3 + index, 4 + index));
  const rest = await Array.fromAsync(batches.createAll({ rows: skipped }, { idempotencyKey: 'skipped' }));
  const listed = await Array.fromAsync(batches.list());
  expect(listed.map((batch) => batch.id)).toEqual([...imported, ...rest].map((batch) => batch.id).reverse());
  const created = [];
  for (const { id } of listed) {
    await batches.wait(id);
    for await (const row of batches.rows(id, { status: 'created' })) created.push(row.external_ref);
  }
  expect(created.sort()).toEqual(rows.map((row) => row.external_ref));
});

test('a refusal that is replayed for each of its keys ends a call of many batches', async () => {
  const keys: (string | null)[] = [];
  const fetch: typeof globalThis.fetch = async (_url, { headers } = {}) => {
    keys.push(new Headers(headers).get('idempotency-key'));
    return Response.json({ error: 'No.' }, { status: 403, headers: { 'idempotent-replay': 'true' } });
  };
  const signpost = new Signpost({ apiKey: 'sk_live_x', baseUrl: 'http://a', fetch });
  const batches = signpost.batches.createAll({ rows: [{ target_url: TARGET }] }, { idempotencyKey: 'k' });
  await expect(batches.next()).rejects.toBeInstanceOf(PermissionDeniedError);
  expect(keys).toEqual(['k/1', ...Array.from({ length: 20 }, (_, index) => `k/1.${index + 1}`)]);
});

test('batches are split at 25,000 rows and at 3,500,000 bytes', async () => {
  const account = await api.account({ plan: Plan.ENTERPRISE });
  const signpost = new Signpost({ apiKey: account.apiKey, baseUrl: api.signpost.url });
  const rows = Array.from({ length: 25_001 }, () => ({ target_url: 'https://a.example' }));
  const sizes = [];
  for await (const batch of signpost.batches.createAll({ rows })) sizes.push(batch.counts.total);
  expect(sizes).toEqual([25_000, 1]);

  const long = Array.from({ length: 12_000 }, (_, index) => ({
    target_url: TARGET,
    name: `${index} ${'ü'.repeat(190)}`,
  }));
  const fields = { name: 'ü' };
  const parts = [...splitRows(long, { fields })];
  expect(parts.flat()).toEqual(long);
  expect(parts.length).toBe(2);
  for (const [index, part] of parts.entries()) {
    const bytes = (more: object[]) => Buffer.byteLength(JSON.stringify({ ...fields, rows: [...part, ...more] }));
    expect(bytes([])).toBeLessThanOrEqual(3_500_000);
    const following = parts[index + 1]?.[0];
    if (following) expect(bytes([following])).toBeGreaterThan(3_500_000);
  }
});

test.each([
  ['0', 0, [3]],
  ['a negative number', -1, [3]],
  ['NaN', Number.NaN, [3]],
  ['a fraction', 2.5, [2, 1]],
])('as rowsPerBatch, %s never makes a batch too large', (_what, mostRows, expected) => {
  const split = (count: number) => {
    const rows = Array.from({ length: count }, () => ({ target_url: TARGET }));
    return [...splitRows(rows, { fields: {}, mostRows })].map(({ length }) => length);
  };
  expect(split(3)).toEqual(expected);
  expect(Math.max(...split(25_001))).toBeLessThanOrEqual(25_000);
});

test.each([
  ['an unknown code', [404], NotFoundError],
  ['an unknown code, after too many requests', [429, 404], NotFoundError],
  ['a code that an attempt with a 5xx may have deleted', [500, 429, 404], undefined],
])('the 404 of a DELETE: %s', async (_what, statuses, expected) => {
  const rest = [...statuses];
  const fetch = async () => new Response(null, { status: rest.shift() ?? 0, headers: { 'retry-after': '0' } });
  const signpost = new Signpost({ apiKey: 'sk_live_x', baseUrl: 'http://a', fetch });
  const done = signpost.codes.delete('qr_x');
  if (expected) await expect(done).rejects.toBeInstanceOf(expected);
  else expect(await done).toEqual({ id: 'qr_x', deleted: true });
  expect(rest).toEqual([]);
});

test.each([
  'localhost:8080',
  'signpost.example.com',
  'ftp://signpost.example.com',
  'https://',
  'https://user:secret@signpost.example.com',
])('an address that is no http or https URL, or has credentials, is an error at once: %s', (baseUrl) => {
  expect(() => new Signpost({ apiKey: 'sk_live_x', baseUrl })).toThrow('must be an http or https URL');
});

test.each(['<!doctype html>', '', 'null', '{"status":"ok"}', '{"data":null}', '{"data":"ok"}'])(
  'an answer of something else, as at a wrong address, is a SignpostError: %s',
  async (body) => {
    const fetch = async () => new Response(body, { headers: { 'content-type': 'text/html' } });
    const signpost = new Signpost({ apiKey: 'sk_live_x', baseUrl: 'http://a', fetch });
    for (const call of [
      () => signpost.tags.list(),
      () => signpost.codes.create({ target_url: TARGET }),
      () => signpost.codes.get('qr_x'),
      () => signpost.codes.delete('qr_x'),
      () => signpost.codes.image('qr_x'),
      () => signpost.batches.list().page(),
      () => signpost.openapi(),
    ])
      await expect(call()).rejects.toBeInstanceOf(SignpostError);
  },
);

test('so is a list without its pagination', async () => {
  const fetch = async () => Response.json({ data: [] });
  const signpost = new Signpost({ apiKey: 'sk_live_x', baseUrl: 'http://a', fetch });
  for (const list of [signpost.codes.list(), signpost.batches.list(), signpost.batches.rows('batch_x')])
    await expect(list.page()).rejects.toBeInstanceOf(SignpostError);
});

test('lists no batch twice, however many are created meanwhile', async () => {
  const ids = ['batch_3', 'batch_2', 'batch_1'];
  const fetch = async (url: Parameters<typeof globalThis.fetch>[0]) => {
    const offset = Number(new URL(String(url)).searchParams.get('offset'));
    const data = ids.slice(offset, offset + 2).map((id) => ({ id }));
    // After the first page, more than a page of them.
    if (offset === 0) ids.unshift('batch_7', 'batch_6', 'batch_5', 'batch_4');
    return Response.json({ data, pagination: { limit: 2, offset }, total: ids.length });
  };
  const signpost = new Signpost({ apiKey: 'sk_live_x', baseUrl: 'http://a', fetch });
  const listed = await Array.fromAsync(signpost.batches.list());
  expect(listed.map(({ id }) => id)).toEqual(['batch_3', 'batch_2', 'batch_1']);
});

test('an empty idempotency key gives no batch another one', async () => {
  const fetch = () => expect.fail('it was sent');
  const signpost = new Signpost({ apiKey: 'sk_live_x', baseUrl: 'http://a', fetch });
  const batches = signpost.batches.createAll({ rows: [{ target_url: TARGET }] }, { idempotencyKey: '' });
  await expect(batches.next()).rejects.toThrow('must not be empty');
});

/** A server that always gives the same answer; `requests`: how many it has had. */
async function answering(status: number, headers: Record<string, string> = {}) {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests++;
    response.writeHead(status, headers).end(status < 400 ? '' : '{"error":"No."}');
  });
  return { baseUrl: await listening(server), requests: () => requests };
}

/** The address of a server, which listens until the test ends. */
async function listening(server: Server): Promise<string> {
  await new Promise<void>((done) => server.listen(0, LOOPBACK, done));
  onTestFinished(() => server.closeAllConnections());
  onTestFinished(() => void server.close());
  return `http://${LOOPBACK}:${(server.address() as AddressInfo).port}`;
}

test.each([
  ['a monthly quota that is used up', 429, {}, RateLimitError, 1],
  ['a Retry-After that is too long', 429, { 'retry-after': '61' }, RateLimitError, 1],
  ['a Retry-After that is a date', 429, { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, RateLimitError, 3],
  ['one that is a date far ahead', 503, { 'retry-after': 'Fri, 31 Dec 9999 23:59:59 GMT' }, ServerError, 1],
  ['one that is neither', 429, { 'retry-after': '1.5' }, RateLimitError, 1],
  ['a conflict of the first attempt', 409, {}, ApiError, 1],
  ['a redirect', 302, { location: 'https://example.com/' }, ApiError, 1],
  ['a failure that lasts', 500, { 'x-request-id': 'r-1' }, ServerError, 3],
  ['being unavailable for long', 503, { 'retry-after': '0' }, ServerError, 3],
])('retries are bounded: %s', async (_what, status, headers, expected, attempts) => {
  const { baseUrl, requests } = await answering(status, headers);
  const signpost = new Signpost({ apiKey: 'sk_live_x', baseUrl, maxRetries: 2 });
  const error = await signpost.codes.create({ target_url: TARGET }).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(expected);
  expect(requests()).toBe(attempts);
  if (status === 302) expect(error.message).toBe('HTTP 302: a redirect to https://example.com/');
  if (status === 500) expect(error).toMatchObject({ message: 'No.', status, requestId: 'r-1' });
});

test('a job that is restarted during its creation waits for the result of its first request', async () => {
  const account = await api.account();
  const client = new pg.Client(api.signpost.databaseUrl);
  await client.connect();
  onTestFinished(() => client.end());
  // Blocks creations of the account.
  await client.query('begin');
  await client.query('select from code_counts where account_id = $1 for update', [decodeId('acct', account.id)]);
  const create = () =>
    new Signpost({ apiKey: account.apiKey, baseUrl: api.signpost.url, maxRetries: 1 }).codes.create(
      { target_url: TARGET },
      { idempotencyKey: 'job' },
    );
  const first = create();
  await setTimeout(500);
  const restarted = create();
  await setTimeout(3_500);
  await client.query('rollback');
  expect((await restarted).id).toBe((await first).id);
  const other = new Signpost({ apiKey: account.apiKey, baseUrl: api.signpost.url }).codes.create(
    { target_url: `${TARGET}2` },
    { idempotencyKey: 'job' },
  );
  await expect(other).rejects.toMatchObject({ name: 'ConflictError', retryAfter: undefined, idempotencyKey: 'job' });
});

/** A server that gives answers one after another, with `Retry-After` unless it is undefined; `at`: when, in ms. */
async function answeringInTurn(...answers: (readonly [status: number, retryAfter?: string])[]) {
  const at: number[] = [];
  const keys = new Set<string | undefined>();
  const server = createServer((request, response) => {
    const [status, retryAfter] = answers[at.length] ?? [500];
    at.push(performance.now());
    keys.add(request.headers['idempotency-key'] as string | undefined);
    request.resume();
    response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter });
    response.end(status < 400 ? '{"data":{}}' : '{"error":"No."}');
  });
  return { baseUrl: await listening(server), at, keys };
}

test('a creation in flight is awaited beyond maxRetries, at most once a second, with its key', async () => {
  const { baseUrl, at, keys } = await answeringInTurn([503, '0'], [409, '0'], [409, '1'], [409, '0'], [201]);
  await new Signpost({ apiKey: 'sk_live_x', baseUrl, maxRetries: 1 }).codes.create({ target_url: TARGET });
  expect([at.length, keys.size]).toEqual([5, 1]);
  // Timers may be a millisecond early.
  for (const index of [2, 3, 4]) expect((at[index] ?? 0) - (at[index - 1] ?? 0)).toBeGreaterThanOrEqual(995);
});

test.each([
  ['in flight for more than 30 s', [[409, '16'], [409, '16'], [201]], 4, 2],
  ['in flight, without retries', [[409, '1'], [201]], 0, 1],
  ['its key was used for something else, also after a failure', [[503, '0'], [409], [201]], 4, 2],
] as const)('a creation fails, and its error has the key: %s', async (_what, answers, maxRetries, attempts) => {
  const { baseUrl, at, keys } = await answeringInTurn(...answers);
  const signpost = new Signpost({ apiKey: 'sk_live_x', baseUrl, maxRetries });
  const error = await signpost.codes.create({ target_url: TARGET }).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(ConflictError);
  expect(at.length).toBe(attempts);
  expect([...keys]).toEqual([error.idempotencyKey]);
});

test('the error of createAll has the key with which that call can be repeated, also if the connection failed', async () => {
  const keys: (string | undefined)[] = [];
  const server = createServer((request) => {
    keys.push(request.headers['idempotency-key'] as string | undefined);
    request.socket.destroy();
  });
  const signpost = new Signpost({ apiKey: 'sk_live_x', baseUrl: await listening(server), maxRetries: 0 });
  const created = signpost.batches.createAll({ rows: [{ target_url: TARGET }] });
  const error = await created.next().catch((thrown) => thrown);
  expect(error).toBeInstanceOf(ConnectionError);
  expect(keys).toEqual([`${error.idempotencyKey}/1`]);
});

test.each(['identity', 'gzip'])('a response of more than 64 MiB is an error: %s', async (encoding) => {
  const most = 64 * 1024 * 1024;
  for (const bytes of [most, most + 1]) {
    const server = createServer((_request, response) => {
      const text = Buffer.alloc(bytes, ' ');
      response.writeHead(200, { 'content-type': 'image/png', 'content-encoding': encoding });
      response.end(encoding === 'gzip' ? gzipSync(text) : text);
    });
    const signpost = new Signpost({ apiKey: 'sk_live_x', baseUrl: await listening(server) });
    const length = signpost.codes.image('qr_x').then((image) => image.byteLength);
    if (bytes > most) await expect(length).rejects.toThrow('The response has more than 64 MiB.');
    else expect(await length).toBe(bytes);
  }
});

test.each(['9'.repeat(400), 'Fri, 31 Dec 9999 23:59:59 GMT'])('a Retry-After of %s is cut', async (retryAfter) => {
  const { baseUrl, at } = await answeringInTurn([429, retryAfter]);
  const abort = new AbortController();
  const options = { apiKey: 'sk_live_x', baseUrl, maxRetryDelayMs: Number.POSITIVE_INFINITY };
  const waiting = new Signpost(options).tags.list({ signal: abort.signal });
  const ended = expect(waiting).rejects.toThrow('enough');
  await expect.poll(() => at.length).toBe(1);
  await setTimeout(300);
  abort.abort(new Error('enough'));
  await ended;
  expect(at.length).toBe(1);
  const again = await answeringInTurn([429, retryAfter]);
  const failed = new Signpost({ ...options, baseUrl: again.baseUrl, maxRetries: 0 }).tags.list();
  await expect(failed).rejects.toMatchObject({ retryAfter: 24 * 86_400 });
});

test.each([0.5, 2 ** 31, Number.POSITIVE_INFINITY])('a timeout of %s ms', async (timeoutMs) => {
  const fetch: typeof globalThis.fetch = async (_url, { signal } = {}) => {
    await setTimeout(200, undefined, signal ? { signal } : {});
    return Response.json({ data: [] });
  };
  const listed = new Signpost({
    apiKey: 'sk_live_x',
    baseUrl: 'http://a',
    fetch,
    timeoutMs,
    maxRetries: 0,
  }).tags.list();
  if (timeoutMs < 200) await expect(listed).rejects.toBeInstanceOf(ConnectionError);
  else expect(await listed).toEqual([]);
});

test.each([0, -1, Number.NaN])('a timeout of %s ms is an error at once', (timeoutMs) => {
  expect(() => new Signpost({ apiKey: 'sk_live_x', baseUrl: 'http://a', timeoutMs })).toThrow('`timeoutMs`');
});

test('an abort ends an operation that waits, with its own reason', async () => {
  const reason = new Error('enough');
  for (const [status, body] of [
    [503, { error: 'No.' }],
    [200, { data: { status: 'processing' }, pagination: {} }],
  ] as const) {
    const abort = new AbortController();
    const fetch = async () => {
      // When the answer has been read, the operation waits for a repetition, or for the next look at the batch.
      setTimeout(100).then(() => abort.abort(reason));
      return Response.json(body, { status, headers: { 'retry-after': '30' } });
    };
    const signpost = new Signpost({ apiKey: 'sk_live_x', baseUrl: 'http://a', fetch });
    await expect(signpost.batches.wait('batch_x', { signal: abort.signal })).rejects.toBe(reason);
  }
});

test('what cannot be sent is an error at once, and not one of the connection', async () => {
  let fetched = 0;
  const fetch = async () => {
    fetched++;
    return new Response(null, { status: 500 });
  };
  const signpost = new Signpost({ apiKey: 'sk_live_x', baseUrl: 'http://a', fetch });
  const name = 1n as unknown as string;
  for (const created of [
    signpost.codes.create({ target_url: TARGET, name }),
    signpost.codes.create({ target_url: TARGET }, { idempotencyKey: '2026–11' }),
    signpost.codes.get('qr_\ud800'),
    signpost.batches.get('batch_\ud800'),
    signpost.batches.createAll({ rows: [{ target_url: TARGET, name }] }).next(),
    signpost.batches.createAll({ rows: [undefined as unknown as { target_url: string }] }).next(),
  ]) {
    const error = await created.catch((thrown) => thrown);
    expect(error).toBeInstanceOf(SignpostError);
    expect(error).not.toBeInstanceOf(ConnectionError);
  }
  expect(fetched).toBe(0);
});

test('a key and an address are required, and errors do not contain the key', async () => {
  expect(() => new Signpost({ apiKey: '', baseUrl: 'http://a' })).toThrow(/SIGNPOST_API_KEY/);
  expect(() => new Signpost({ apiKey: 'sk_live_x' })).toThrow(/SIGNPOST_BASE_URL/);
  expect(() => new Signpost({ apiKey: 'sk_live_x\n', baseUrl: 'http://a' })).toThrow('visible ASCII');
  const { baseUrl } = await answering(200);
  const unused = baseUrl.replace(/\d+$/, '1');
  const signpost = new Signpost({ apiKey: 'sk_live_secret', baseUrl: unused, maxRetries: 0 });
  const error = await signpost.tags.list().catch((thrown) => thrown);
  expect(error).toBeInstanceOf(ConnectionError);
  expect(`${error.stack} ${error.cause?.stack}`).not.toContain('secret');
});

test('the published package runs the example of its README', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-sdk-typescript-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: resolve('sdk/typescript') });
  const installed = join(folder, 'node_modules/signpost-sdk');
  await mkdir(installed, { recursive: true });
  await run('tar', ['-xzf', join(folder, 'signpost-sdk-1.3.0.tgz'), '-C', installed, '--strip-components=1']);
  const example = /```ts example\n(.*?)```/s.exec(readFileSync('sdk/typescript/README.md', 'utf8'))?.[1] ?? '';
  // Compiled by a user's compiler, against the types of the package.
  const compilerOptions = {
    module: 'nodenext',
    strict: true,
    types: ['node'],
    typeRoots: [resolve('node_modules/@types')],
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['example.ts'] }));
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await writeFile(join(folder, 'example.ts'), example);
  await run(resolve('node_modules/.bin/tsc'), ['-p', folder]);

  const { apiKey } = await api.account();
  const env = { ...process.env, SIGNPOST_API_KEY: apiKey, SIGNPOST_BASE_URL: api.signpost.url };
  const { stdout } = await run(process.execPath, [join(folder, 'example.js')], { cwd: folder, env });
  expect(stdout).toMatch(/^http\S+\/r\/\w{7}\n2 codes created\n/);
});
