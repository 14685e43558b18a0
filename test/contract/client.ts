import { beforeAll } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import type { OpenApiDocument } from '../../gateway/rest/openapi/openapi-types.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import {
  type SharedSignpost,
  type Signpost,
  type SignpostOptions,
  sharedSignpost,
  startSignpost,
} from '../harness/processes.ts';
import { describedBy, type Exchange } from './openapi-validation.ts';

export const TARGET = 'https://example.com/menu?table=4#today';

/** An answer of the API. */
export interface Answer<Body> {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed when it is JSON, else text. */
  readonly body: Body;
}

export interface Request {
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent unchanged. */
  readonly raw?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Index of the gateway; default: the first. */
  readonly gateway?: number;
}

export type One = { readonly success: true; readonly data: CodeJson };
export type Page = {
  readonly success: true;
  readonly data: readonly CodeJson[];
  readonly pagination: { readonly limit: number; readonly offset: number | null; readonly next_cursor: string | null };
  readonly total: number;
};
export type Failure = {
  readonly error: string;
  readonly code?: string;
  readonly limit?: number;
  readonly used?: number;
};

/** An account with its key. Each test creates its own, because the burst limit is 120 requests. */
export interface Account {
  readonly id: string;
  readonly apiKey: string;
  call<Body = Failure>(method: string, path: string, request?: Request): Promise<Answer<Body>>;
  /** Creates a code, which must succeed. */
  create(fields?: Readonly<Record<string, unknown>>): Promise<CodeJson>;
}

export interface Contract<Running extends SharedSignpost> {
  readonly signpost: Running;
  /** The OpenAPI document that it serves. */
  readonly document: OpenApiDocument;
  /** Throws when an answer differs from the document. Applied to every `call`. */
  expectDescribed(exchange: Exchange): void;
  account(changes?: Parameters<SharedSignpost['createAccount']>[0]): Promise<Account>;
  /** A call without a key, unless the headers have one. */
  call<Body = Failure>(method: string, path: string, request?: Request): Promise<Answer<Body>>;
}

/** Sends a request with another client, which returns undefined if it can't send such a request. */
export type Through = (
  baseUrl: string,
  method: string,
  path: string,
  request: Request,
) => Promise<Response | undefined>;

let through: Through | undefined;

/** Makes all contract tests of this process send their requests with another client. */
export function sendThrough(client: Through): void {
  through = client;
}

/** Started for the first contract of the calling file alone. */
let ofFile: Promise<Signpost> | undefined;

/**
 * A Signpost for the calling file: the one that all files of the run share, for tests that neither disturb it nor look
 * at more than their accounts have; one of the file's own, which its imports share; or one with `options`, which may be
 * a function that runs first.
 */
export function contract(): Contract<SharedSignpost>;
export function contract(of: 'file' | SignpostOptions | (() => Promise<SignpostOptions>)): Contract<Signpost>;
export function contract(of?: 'file' | SignpostOptions | (() => Promise<SignpostOptions>)): Contract<SharedSignpost> {
  let started: SharedSignpost | undefined;
  let document: OpenApiDocument | undefined;
  let expectDescribed: (exchange: Exchange) => void = () => undefined;
  beforeAll(async () => {
    if (of === undefined) {
      started = await sharedSignpost();
    } else if (of === 'file') {
      ofFile ??= startSignpost();
      started = await ofFile;
    } else {
      started = await startSignpost(typeof of === 'function' ? await of() : of);
    }
    const { apiKey } = await started.createAccount();
    const headers = { authorization: `Bearer ${apiKey}` };
    document = (await call<OpenApiDocument>('GET', '/api/v1/openapi', { headers })).body;
    expectDescribed = describedBy(document);
  });
  const running = () => {
    if (!started) throw new Error('Signpost runs only while tests do.');
    return started;
  };

  async function call<Body = Failure>(method: string, path: string, request: Request = {}): Promise<Answer<Body>> {
    const body = request.json === undefined ? request.raw : JSON.stringify(request.json);
    const url = running().gateways[request.gateway ?? 0]?.url ?? '';
    const response =
      (await through?.(url, method, path, request)) ??
      (await fetch(`${url}${path}`, {
        method,
        redirect: 'manual',
        headers: { ...request.headers },
        ...(body === undefined ? {} : { body }),
      }));
    const text = await response.text();
    const json = response.headers.get('content-type')?.startsWith('application/json') === true && text !== '';
    const { status, headers } = response;
    const answer = { status, headers, body: json ? JSON.parse(text) : text };
    const withKey = request.headers?.['idempotency-key'] !== undefined;
    if (path.startsWith('/api/v1/')) expectDescribed({ method, path, withKey, ...answer });
    return answer;
  }

  return {
    get signpost() {
      return running();
    },
    get document() {
      if (!document) throw new Error('Signpost serves its document only while tests run.');
      return document;
    },
    expectDescribed: (exchange) => expectDescribed(exchange),
    call,
    async account(changes = {}) {
      const { accountId: id, apiKey } = await running().createAccount({ plan: Plan.BUSINESS, ...changes });
      const authorization = `Bearer ${apiKey}`;
      const account: Account = {
        id,
        apiKey,
        call: (method, path, request = {}) =>
          call(method, `/api/v1${path}`, { ...request, headers: { authorization, ...request.headers } }),
        async create(fields = {}) {
          const created = await account.call<One>('POST', '/qr-codes', { json: { target_url: TARGET, ...fields } });
          if (created.status !== 201) throw new Error(`no code was created: ${JSON.stringify(created.body)}`);
          return created.body.data;
        },
      };
      return account;
    },
  };
}
