import { z } from 'zod';
import { COLOUR } from '../../../common/codes/colour.ts';
import type { BatchJson } from '../../../common/contract/batch-json.ts';
import { MAX_ROWS } from '../../../common/contract/limits.ts';
import { namesOf, ROW_STATUS_BY_NAME } from '../../../common/contract/names.ts';
import { CAMPAIGN_TYPE, designSchema, FOLDER, NAME, TAGS, TARGET_URL } from './code-schema.ts';
import { nullableText, nullableTexts, optionalText, requiredText } from './fields.ts';
import { count } from './page.ts';

/** A row in a request: an invalid one fails alone. */
export const rowInput = z
  .object(
    {
      target_url: optionalText(TARGET_URL),
      name: nullableText(NAME),
      campaign_type: nullableText(CAMPAIGN_TYPE),
      folder: nullableText(FOLDER),
      tags: nullableTexts(TAGS),
      external_ref: nullableText({
        maxLength: 128,
        description: 'Your own identifier for the object that carries the code; stored with the row.',
      }),
    },
    'A row must be an object',
  )
  .meta({
    id: 'BatchRowInput',
    description: 'A code to create, by the rules of `createCode`.',
    required: ['target_url'],
  });

/** A colour. It is checked here, as the core names its field differently, and an empty one means the default there. */
function colour(rules: Parameters<typeof requiredText>[0]) {
  return requiredText(rules)
    .refine((value) => COLOUR.test(value), 'must be #rgb or #rrggbb')
    .exactOptional();
}

const shape = {
  name: optionalText({ ...NAME, examples: ['Tables of the terrace'] }),
  domain_id: optionalText({
    description: 'A live custom domain of the account that every code is printed on.',
    examples: ['domain_01kagd4y0jf1qtqf0m8mvy7z5c'],
  }),
  design: z
    .object(
      {
        foregroundColor: colour({ description: 'The modules: `#rgb` or `#rrggbb`; default `#000000`.' }),
        backgroundColor: colour({
          description: 'The background: `#rgb` or `#rrggbb`; default `#ffffff`.',
          examples: ['#ffffff'],
        }),
      },
      'must be an object',
    )
    .meta({ id: 'DesignInput', description: 'Colours of the images.' })
    .exactOptional(),
};

const ARRAY = ({ input }: { input: unknown }) => (input === undefined ? 'is required' : 'must be an array');

/** The body of a batch as it is validated: its rows are validated individually later. */
export const createBatchBody = z.object({
  ...shape,
  rows: z.custom<readonly unknown[]>(Array.isArray, { error: ARRAY }),
});

/** The body of a batch as it is documented. */
export const documentedBatchBody = z.object({
  rows: z.array(rowInput).meta({ minItems: 1, maxItems: MAX_ROWS, description: 'In print order.' }),
  ...shape,
});

/** A batch in responses. */
export const batchSchema = z
  .object({
    id: z.string().meta({ description: 'The identifier used in paths: `batch_…`.' }),
    name: z.string().nullable().meta({ description: 'A name of your own.' }),
    status: z.enum(['processing', 'completed']).meta({ description: 'Completed: every row is final.' }),
    counts: z
      .object({
        total: count('All rows.'),
        pending: count('Rows that wait.'),
        created: count('Rows that became codes.'),
        failed: count('Invalid rows.'),
        skipped: count('Rows beyond the QR code limit.'),
      })
      .meta({ id: 'BatchCounts', description: 'Rows by status.' }),
    domain_id: z.string().nullable().meta({ description: 'The custom domain of its codes; null: the platform’s.' }),
    design: designSchema,
    created_at: z.string().meta({ format: 'date-time' }),
    completed_at: z.string().nullable().meta({ format: 'date-time', description: 'Null until completed.' }),
  })
  .meta({ id: 'Batch', description: 'A batch of codes.' }) satisfies z.ZodType<BatchJson>;

const AS_SENT = 'As it was sent; of a row that failed, cut off after 256 characters.';

/** A row of a batch in responses. */
export const rowSchema = z
  .object({
    index: count('Its index in the request, from 0.'),
    status: z.enum(namesOf(ROW_STATUS_BY_NAME)),
    target_url: z.string().nullable().meta({
      description:
        'As it was sent, but trimmed if it is longer than 2,048 characters; of a row that failed, cut off after as many.',
    }),
    name: z.string().nullable().meta({ description: AS_SENT }),
    external_ref: z.string().nullable().meta({ description: AS_SENT }),
    id: z.string().nullable().meta({ description: 'The code, once created.' }),
    short_code: z.string().nullable().meta({ description: 'The short code, once created.' }),
    scan_url: z.string().nullable().meta({ description: 'The scan URL, once created.' }),
    reason: z.string().nullable().meta({ description: 'Why it failed or was skipped, as a sentence.' }),
    warnings: z.array(z.string()).exactOptional().meta({
      description: 'Present if the folder or tags of a created row could not be applied: one sentence for each reason.',
    }),
  })
  .meta({ id: 'BatchRow', description: 'The result of a row.' });

/** The batch in examples. */
export const batchExample: z.infer<typeof batchSchema> = {
  id: 'batch_01kagd1x2vfkdtx3d1y0w6z8qs',
  name: 'Tables of the terrace',
  status: 'completed',
  counts: { total: 2, pending: 0, created: 2, failed: 0, skipped: 0 },
  domain_id: null,
  design: { foregroundColor: '#123456', backgroundColor: '#ffffff' },
  created_at: '2026-11-20T09:30:00.000Z',
  completed_at: '2026-11-20T09:30:00.412Z',
};
