import type { IncomingHttpHeaders } from 'node:http';
import type { DescMethodUnary } from '@bufbuild/protobuf';
import type { z } from 'zod';
import type { CallOptions } from '../core/transport.ts';
import type { ErrorCases } from './openapi/openapi-errors.ts';
import type { Content } from './openapi/openapi-types.ts';
import type { Query } from './query.ts';

/** A parsed request to an endpoint. */
export interface EndpointRequest<Body> {
  /** The `{id}` in the path; empty if it has none. */
  readonly id: string;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
  /** The parsed body; undefined if the endpoint has none. */
  readonly body: Body;
  /** Options for the endpoint's RPC. */
  readonly options: CallOptions;
}

/** The response of an endpoint; `Data` is sent as JSON unless it is bytes. */
export interface EndpointResponse<Data> {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: Data;
}

/** A query parameter for the OpenAPI document. All are optional. */
export interface Parameter {
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly example: unknown;
}

/** The sections of the reference. */
export const SECTIONS = {
  'QR codes': 'Dynamic, static and landing-page codes, with their targets, images and scans.',
  Batches: 'Many codes in one request.',
  'Folders and tags': 'Labels for codes. Both are created by naming them on a code.',
  'This description': 'The API in machine-readable form.',
} as const;

/** One operation of the REST API: its RPC, and its description in the OpenAPI document. */
export interface Endpoint<Body = unknown, Data = unknown> {
  /** `operationId`. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** In OpenAPI's notation; `{id}` is the only possible parameter. */
  readonly path: string;
  /** The method that it calls; a rejected request is authenticated and metered as a call of this method. */
  readonly rpc: DescMethodUnary;
  readonly tag: keyof typeof SECTIONS;
  readonly summary: string;
  readonly description: string;
  readonly query?: Readonly<Record<string, Parameter>>;
  readonly body?: RequestBody<Body>;
  /** Whether it takes an `Idempotency-Key`. */
  readonly idempotent?: true;
  /** The timeout of the call to the core in ms, if it differs from the default. */
  readonly timeoutMs?: number;
  /** Descriptions of the success statuses, and of headers specific to this endpoint. */
  readonly success: Readonly<Record<number, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** The operations that take the `id` of the response. */
  readonly links?: readonly string[];
  readonly response: { readonly schema: z.ZodType<Data>; readonly example: Data } | { readonly media: Content };
  /** The causes of its errors by status. Any endpoint may also respond with 401, 429, 500 and 503. */
  readonly errors: ErrorCases;
  /** Descriptions of statuses, in place of those that are made of the causes. */
  readonly errorDescriptions?: Readonly<Partial<Record<keyof ErrorCases, string>>>;
  handle(request: EndpointRequest<Body>): Promise<EndpointResponse<Data>>;
}

/** A JSON request body. */
export interface RequestBody<Body> {
  /** The schema for the OpenAPI document: types, and the core's rules as annotations. */
  readonly schema: z.ZodType;
  readonly example: unknown;
  readonly maxBytes: number;
  /**
   * The maximum size that is read and parsed before the core has authenticated the caller, so that ordinary requests
   * need only one RPC. Parsing that much should cost about as much as that RPC.
   */
  readonly bytesBeforeAuthentication: number;
  /** Parses the bytes and takes ownership of their memory. Rejects with a Refusal if they are invalid. */
  read(raw: Buffer, by: BodyOwner): Promise<Body>;
}

/** The caller whose body is parsed, for the queue. */
export interface BodyOwner {
  /** The account, `acct_…`; empty if not authenticated yet. */
  readonly account: string;
  /** Aborts when the body no longer needs to be parsed. */
  readonly signal: AbortSignal | undefined;
}

/** Type-checks a definition and erases its type parameters, so that endpoints fit in one list. */
export function endpoint<Body, Data>(definition: Endpoint<Body, Data>): Endpoint {
  return definition as Endpoint;
}
