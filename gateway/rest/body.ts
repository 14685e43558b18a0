import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { Refusal } from './refusal.ts';

/** Identifies a request: retries with an idempotency key must have the same one. Source: docs/contract.md, "Idempotency". */
export function fingerprint({ method, url }: Pick<FastifyRequest, 'method' | 'url'>, body: Buffer): string {
  const path = url.split('?', 1)[0];
  return createHash('sha256').update(`${method} ${path}\n`).update(body).digest('base64url');
}

/** Parses JSON; undefined if it is not valid JSON in UTF-8. */
export function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    // Callers report it to the client.
    return undefined;
  }
}

/** Returns the fields of the schema. Throws a Refusal that names the first field of a wrong type. */
export function checkBody<Body>(schema: z.ZodType<Body>, json: unknown): Body {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new Refusal('MALFORMED_BODY', 'The body must be a JSON object.');
  }
  const { data, error } = schema.safeParse(json);
  if (error) throw new Refusal('INVALID_FIELD', firstFault(error));
  return data;
}

/** Returns a reader of bodies that the schema fully describes. */
export function bodyReader<Body>(schema: z.ZodType<Body>): (raw: Buffer) => Promise<Body> {
  return async (raw) => checkBody(schema, parseJson(raw));
}

/** The first validation error, as a sentence. */
export function firstFault(error: z.ZodError): string {
  const [issue] = error.issues;
  return `${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}.`.trimStart();
}
