import type { z } from 'zod';
import { Refusal } from '../refusal.ts';
import { parseJson } from './parse-json.ts';

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

/** The first validation error, as a sentence that begins with its field, like those of the core. */
export function firstFault(error: z.ZodError): string {
  const [{ path, message } = { path: [], message: '' }] = error.issues;
  return path.length === 0 ? `${message}.` : `${path.join('.')}: ${message}.`;
}
