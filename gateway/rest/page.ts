import { z } from 'zod';
import type { Parameter } from './endpoint.ts';

/** The page size as a query parameter. */
export function limitParameter(fallback: number, maximum: number): Parameter {
  return {
    description: 'The page size. Values out of range are clamped; anything but an integer counts as the default.',
    schema: { type: 'integer', minimum: 1, maximum, default: fallback },
  };
}

/** The offset as a query parameter. */
export const offsetParameter: Parameter = {
  description: 'The number of items to skip. Anything but an integer counts as 0.',
  schema: { type: 'integer', minimum: 0, default: 0 },
};

/** The envelope of a single resource. Source: docs/contract.md, "Bodies and envelopes". */
export function envelope<Data extends z.ZodType>(data: Data) {
  return z.object({ success: z.literal(true), data });
}

/** `pagination` of a page requested by offset. */
export const pageSchema = z.object({
  limit: z.int().meta({ description: 'The page size used.' }),
  offset: z.int().meta({ description: 'The offset used.' }),
});
