import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { Refusal } from './refusal.ts';

/** How much of a body that was turned down is still taken off the wire, in bytes, and for how long, in ms. */
const DRAIN_BYTES = 32 * 1024 * 1024;
const DRAIN_MS = 5_000;

/** A body larger than its endpoint takes. Nobody has read it, so it has no fingerprint. */
export class BodyTooLarge extends Refusal {}

/** The whole body. Throws BodyTooLarge: by `Content-Length` before a byte is read, and while reading where there is none. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const tooLarge = () => new BodyTooLarge('BODY_TOO_LARGE', `The body may have at most ${maxBytes} bytes.`);
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

/**
 * An answer that ends only when the rest of the request has been taken off the wire, within bounds. Closing earlier
 * would reset the connection, and the client would lose the answer while it still sends (RFC 9112 §9.6).
 */
export async function* answerThenDrain(answer: Buffer, request: IncomingMessage): AsyncGenerator<Buffer> {
  yield answer;
  const timer = setTimeout(() => request.destroy(), DRAIN_MS);
  let bytes = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > DRAIN_BYTES) break;
    }
  } catch {
    // The client went away, or took too long: it has had its answer.
  } finally {
    clearTimeout(timer);
  }
}

/** What makes two requests with one idempotency key the same. Source: decision "Idempotency". */
export function fingerprint(method: string, path: string, body: Buffer): string {
  return createHash('sha256').update(`${method} ${path}\n`).update(body).digest('base64url');
}

/** The JSON value; undefined when it is none in UTF-8. */
export function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    // Only the caller can mend it, and is told so.
    return undefined;
  }
}

/** The fields that the schema knows. Throws a Refusal that names the first that is of a wrong type. */
export function checkBody<Body>(schema: z.ZodType<Body>, json: unknown): Body {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new Refusal('MALFORMED_BODY', 'The body must be a JSON object.');
  }
  const { data, error } = schema.safeParse(json);
  if (error) throw new Refusal('INVALID_FIELD', faultOf(error));
  return data;
}

/** Reads a body that is all of the schema's. */
export function readBy<Body>(schema: z.ZodType<Body>): (raw: Buffer) => Promise<Body> {
  return async (raw) => checkBody(schema, parseJson(raw));
}

/** The first thing that is wrong, as a sentence. */
export function faultOf(error: z.ZodError): string {
  const [issue] = error.issues;
  return `${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}.`.trimStart();
}
