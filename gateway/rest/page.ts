import { z } from 'zod';
import type { Parameter } from './endpoint.ts';

/** The page size as a query parameter. */
export function limitParameter(fallback: number, maximum: number): Parameter {
  return {
    description: 'How many on a page. Values out of range are clamped; what is no integer counts as the default.',
    schema: { type: 'integer', minimum: 1, maximum, default: fallback },
  };
}

/** How many to leave out, as a query parameter. */
export const offsetParameter: Parameter = {
  description: 'How many to leave out. What is no integer counts as 0.',
  schema: { type: 'integer', minimum: 0, default: 0 },
};

/** A single thing in its envelope. Source: Response envelope. */
export function envelope<Data extends z.ZodType>(data: Data) {
  return z.object({ success: z.literal(true), data });
}

/** `pagination` of a page that was asked for by offset. */
export const pageSchema = z.object({
  limit: z.int().meta({ description: 'The page size used.' }),
  offset: z.int().meta({ description: 'The offset used.' }),
});
