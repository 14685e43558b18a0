import type { IncomingHttpHeaders } from 'node:http';
import type { DescMethodUnary } from '@bufbuild/protobuf';
import type { CallOptions } from '@connectrpc/connect';
import type { z } from 'zod';
import type { Content } from './openapi-types.ts';
import type { Query } from './query.ts';

/** A request as an endpoint sees it. */
export interface Call<Body> {
  /** The `{id}` of the path; empty where it has none. */
  readonly id: string;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
  /** As the endpoint reads it; undefined where it takes none. */
  readonly body: Body;
  /** For the one RPC that the endpoint makes of the request. */
  readonly options: CallOptions;
}

/** What an endpoint answers with; `Data` is sent as JSON unless it is bytes. */
export interface Answer<Data> {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: Data;
}

/** A query parameter, as the OpenAPI document has it. None is ever required. */
export interface Parameter {
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

/** The statuses that the contract gives a meaning of an endpoint's own. 401, 429, 500 and 503 are everybody's. */
export type ErrorStatus = 400 | 403 | 404 | 409 | 413 | 503;

/** The chapters of the reference. */
export const TAGS = {
  'QR codes': 'Dynamic, static and landing-page codes: their targets, their images, their scans.',
  Batches: 'Many codes in one request.',
  'Folders and tags': 'Codes in order. Both come into being by being named on a code.',
  'This description': 'The API described for machines.',
} as const;

/** One operation of the REST API: what it becomes, and all that the OpenAPI document says of it. */
export interface Endpoint<Body = unknown, Data = unknown> {
  /** `operationId`. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** With `{id}` at most, as OpenAPI writes it. */
  readonly path: string;
  /** The method that it is translated into; a refused request is judged as this one. */
  readonly rpc: DescMethodUnary;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  readonly description: string;
  readonly query?: Readonly<Record<string, Parameter>>;
  readonly body?: RequestBody<Body>;
  /** Whether it takes an `Idempotency-Key`. */
  readonly idempotent?: true;
  /** How long the core may take, in ms, where that is longer than usual. */
  readonly timeoutMs?: number;
  /** What every status of success means, and the headers that only this endpoint sends. */
  readonly success: Readonly<Record<number, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly answer: { readonly schema: z.ZodType<Data>; readonly example: Data } | { readonly media: Content };
  readonly errors: Readonly<Partial<Record<ErrorStatus, string>>>;
  handle(call: Call<Body>): Promise<Answer<Data>>;
}

/** A JSON object that an endpoint takes. */
export interface RequestBody<Body> {
  /** What the OpenAPI document says of it: types, and rules that are the core's as annotations. */
  readonly schema: z.ZodType;
  readonly example: unknown;
  readonly maxBytes: number;
  /**
   * Up to so many bytes are read and parsed before the core has authenticated the caller, so that one RPC is enough for
   * ordinary requests; no more than what costs about as much as that RPC.
   */
  readonly bytesBeforeAuthentication: number;
  /** Parses the bytes, whose memory is its own from then on. Rejects with a Refusal when they are no such object. */
  read(raw: Buffer, by: Reader): Promise<Body>;
}

/** Whose body is parsed, where there is a queue. */
export interface Reader {
  /** The account, `acct_…`; empty while it is not authenticated. */
  readonly account: string;
  /** Aborts when the body need not be parsed any more. */
  readonly signal: AbortSignal | undefined;
}

/** Checks a definition by its own types and forgets them, so that endpoints fit in one list. */
export function endpoint<Body, Data>(definition: Endpoint<Body, Data>): Endpoint {
  return definition as Endpoint;
}
