import { z } from 'zod';
import type { Range } from '../../common/contract/ranges.ts';
import type { Parameter } from './endpoint.ts';

/** The schema of a query parameter with a range. */
export function rangeSchema({ least, most, fallback }: Range): Parameter['schema'] {
  return { type: 'integer', minimum: least, maximum: most, default: fallback };
}

/** The page size as a query parameter. */
export function limitParameter(range: Range): Parameter {
  return {
    description: 'The page size. Values out of range are clamped; anything but an integer counts as the default.',
    schema: rangeSchema(range),
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
