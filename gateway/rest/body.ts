import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { Refusal } from './refusal.ts';

/** What makes two requests with one idempotency key the same. Source: docs/contract.md, "Idempotency". */
export function fingerprint({ method, url }: Pick<FastifyRequest, 'method' | 'url'>, body: Buffer): string {
  const path = url.split('?', 1)[0];
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
