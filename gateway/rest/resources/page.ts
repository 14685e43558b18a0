import { z } from 'zod';
import type { Range } from '../../../common/contract/ranges.ts';
import type { Parameter } from '../endpoint.ts';

/** A number of things in responses. */
export const count = (description: string) => z.int().min(0).meta({ description });

/**
 * A query parameter with a range. The schema has no bounds, because values out of range are clamped and not rejected:
 * strict clients would refuse to send them.
 */
export function rangeParameter(description: string, { least, most, fallback }: Range, example: number): Parameter {
  return {
    description: `${description} ${least} to ${most.toLocaleString('en')}; values out of range are clamped, anything but an integer counts as the default.`,
    schema: { type: 'integer', default: fallback },
    example,
  };
}

/** The page size as a query parameter. */
export function limitParameter(range: Range): Parameter {
  return rangeParameter('The page size:', range, range.most);
}

/** The offset as a query parameter. */
export const offsetParameter: Parameter = {
  description: 'The number of items to skip. Anything but a positive integer counts as 0.',
  schema: { type: 'integer', default: 0 },
  example: 50,
};

/** The envelope of a single resource. Source: docs/contract.md, "Bodies and envelopes". */
export function envelope<Data extends z.ZodType>(data: Data) {
  return z.object({ success: z.literal(true), data });
}

const limit = z.int().min(1).meta({ description: 'The page size used.' });

/** `pagination` of a page requested by offset. */
export const pageSchema = z
  .object({ limit, offset: count('The offset used.') })
  .meta({ id: 'Pagination', description: 'Of a page requested by offset.' });

/** `pagination` of a page requested by cursor or offset. */
export const cursorPageSchema = z
  .object({
    limit,
    offset: z.int().min(0).nullable().meta({ description: 'The offset used; null if requested by cursor.' }),
    next_cursor: z.string().nullable().meta({ description: 'The `cursor` of the next page; null on the last page.' }),
  })
  .meta({ id: 'CursorPagination', description: 'Of a page requested by cursor or offset.' });
