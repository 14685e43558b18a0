import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { create, toBinary } from '@bufbuild/protobuf';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CreateCodeRequestSchema } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { CHROMIUM, launchBrowser } from '../harness/browser.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';

const CREATE = 'signpost.codes.v1.CodesService/CreateCode';
const MESSAGE = { targetUrl: 'https://example.com/menu' };

/** What a page of some origin can see of an answer: `blocked` if the browser gives it nothing. */
type Seen = 'blocked' | { status: number; headers: Record<string, string>; body: number[] };

/** Serves an empty page; its origin differs from any other server's by its port. */
async function pageServer(): Promise<{ server: Server; origin: string }> {
  const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<!doctype html>'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe.skipIf(!CHROMIUM)('calls from a page in a browser', () => {
  let browser: Browser;
  let signpost: Signpost;
  let apiKey: string;
  const servers: Server[] = [];
  const origins = { allowed: '', other: '' };

  beforeAll(async () => {
    for (const name of ['allowed', 'other'] as const) {
      const { server, origin } = await pageServer();
      servers.push(server);
      origins[name] = origin;
    }
    signpost = await startSignpost({ env: { CORS_ORIGINS: `${origins.allowed},https://app.example` } });
    ({ apiKey } = await signpost.createAccount({ plan: Plan.BUSINESS }));
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    for (const server of servers) server.close();
  });

  async function pageOf(origin: string): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    await page.goto(origin);
    return page;
  }

  /** Posts as a client in the page does, and returns all that the page may read. */
  async function post(
    page: Page,
    headers: Record<string, string>,
    body: Uint8Array,
    credentials = false,
  ): Promise<Seen> {
    const url = `http://127.0.0.1:${signpost.corePort}/${CREATE}`;
    return page.evaluate(
      async ([url, headers, body, credentials]) => {
        const init = { method: 'POST', headers, body: new Uint8Array(body) };
        const response = await fetch(url, { ...init, credentials: credentials ? 'include' : 'omit' }).catch(
          () => undefined,
        );
        if (!response) return 'blocked' as const;
        const bytes = [...new Uint8Array(await response.arrayBuffer())];
        return { status: response.status, headers: Object.fromEntries(response.headers), body: bytes };
      },
      [url, headers, [...body], credentials] as const,
    );
  }

  const connect = (page: Page, key: string, credentials = false) =>
    post(
      page,
      { 'content-type': 'application/json', 'connect-protocol-version': '1', authorization: `Bearer ${key}` },
      Buffer.from(JSON.stringify(MESSAGE)),
      credentials,
    );
  const grpcWeb = (page: Page, key: string) => {
    const message = toBinary(CreateCodeRequestSchema, create(CreateCodeRequestSchema, MESSAGE));
    const headers = {
      'content-type': 'application/grpc-web+proto',
      'x-grpc-web': '1',
      'x-user-agent': 'a test',
      'grpc-timeout': '20S',
      'idempotency-key': String(Math.random()),
      authorization: `Bearer ${key}`,
    };
    return post(page, headers, Buffer.concat([Buffer.of(0, 0, 0, 0, message.length), message]));
  };
  const text = (seen: Seen) => (seen === 'blocked' ? seen : Buffer.from(seen.body).toString('latin1'));

  test('of an allowed origin reach Connect and gRPC-Web, and can read what the protocols and Signpost answer', async () => {
    const page = await pageOf(origins.allowed);
    const created = await connect(page, apiKey);
    expect(created).toMatchObject({ status: 200, headers: { 'ratelimit-limit': '50000' } });
    expect(JSON.parse(text(created))).toMatchObject({ code: MESSAGE });
    const streamed = await grpcWeb(page, apiKey);
    expect(streamed).toMatchObject({ status: 200, headers: { 'idempotent-replay': 'false' } });
    expect(text(streamed)).toContain(MESSAGE.targetUrl);
    expect(text(streamed)).toContain('grpc-status: 0');
  });

  test('of an allowed origin can read errors, with their details', async () => {
    const page = await pageOf(origins.allowed);
    const failed = await connect(page, 'x');
    expect(failed).toMatchObject({ status: 401 });
    expect(JSON.parse(text(failed))).toMatchObject({
      code: 'unauthenticated',
      details: [{ debug: { reason: 'INVALID_SERVICE_TOKEN' } }],
    });
    expect(text(await grpcWeb(page, 'x'))).toMatch(/grpc-status: 16.*grpc-status-details-bin: /s);
  });

  test('of another origin are blocked before they are sent, and so are those with cookies', async () => {
    const created = async () => {
      const headers = { authorization: `Bearer ${apiKey}` };
      const list = await fetch(`${signpost.url}/api/v1/qr-codes`, { headers });
      return ((await list.json()) as { total: number }).total;
    };
    const before = await created();
    const page = await pageOf(origins.other);
    expect(await connect(page, apiKey)).toBe('blocked');
    expect(await grpcWeb(page, apiKey)).toBe('blocked');
    expect(await connect(await pageOf(origins.allowed), apiKey, true)).toBe('blocked');
    expect(await created()).toBe(before);
  });
});
