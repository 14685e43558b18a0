import { z } from 'zod';
import { MAX_URL_CHARACTERS } from '../../../common/codes/web-address.ts';
import type { CodeJson, DesignJson } from '../../../common/contract/code-json.ts';
import { MAX_TAGS } from '../../../common/contract/limits.ts';
import { CODE_TYPE_BY_NAME, namesOf } from '../../../common/contract/names.ts';
import { nullableText, nullableTexts, optionalFlag, optionalText, optionalTexts, requiredText } from './fields.ts';
import { count } from './page.ts';

/** Colours of images in responses. */
export const designSchema = z
  .object({
    foregroundColor: z.string().meta({ description: 'The modules: `#rgb` or `#rrggbb`.' }),
    backgroundColor: z.string().meta({ description: 'The background: `#rgb` or `#rrggbb`.' }),
  })
  .meta({ id: 'Design', description: 'Colours of images.' }) satisfies z.ZodType<DesignJson>;

/** A code in responses. */
export const codeSchema = z
  .object({
    id: z.string().meta({ description: 'The identifier used in paths: `qr_…`.' }),
    type: z.enum(namesOf(CODE_TYPE_BY_NAME)).meta({ description: 'Only a dynamic code has a target.' }),
    short_code: z.string().meta({ description: 'Allocated at creation; the last part of the scan URL.' }),
    scan_url: z.string().meta({ format: 'uri', description: "The URL in the print, on the code's own domain." }),
    // Not `format: 'uri'`: targets are stored as sent, and may be `https://bücher.example` or end with `100%`.
    target_url: z.string().exactOptional().meta({ description: 'The target of scans. Dynamic codes only.' }),
    payload: z.string().exactOptional().meta({ description: 'The encoded content. Static codes only.' }),
    name: z.string().nullable().meta({ description: 'A name of your own.' }),
    paused: z.boolean().meta({ description: 'A paused code shows a "paused" page when it is scanned.' }),
    folder: z
      .object({ id: z.string(), name: z.string() })
      .meta({ id: 'CodeFolder', description: 'The folder of a code.' })
      .nullable(),
    tags: z.array(z.string()).meta({ description: 'Names of its tags, in alphabetical order.' }),
    scan_count: count('All scans, including archived ones; never decreases.'),
    campaign_type: z.string().nullable().meta({ description: 'The campaign type given at creation.' }),
    domain_id: z.string().nullable().meta({ description: 'The custom domain it is printed on; null: the platform’s.' }),
    design: designSchema,
    version: z.int().min(1).meta({ description: '1 when created; every change but a scan increments it.' }),
    created_at: z.string().meta({ format: 'date-time' }),
    updated_at: z.string().meta({ format: 'date-time', description: 'Never decreases from one version to the next.' }),
  })
  .meta({ id: 'Code', description: 'A QR code.' }) satisfies z.ZodType<CodeJson>;

/** The code in examples. */
export const codeExample: CodeJson = {
  id: 'qr_01kagcpn9te5gvjxq1rmm30w4h',
  type: 'dynamic',
  short_code: 'h7Kq2Wd',
  scan_url: 'https://qr.example/r/h7Kq2Wd',
  target_url: 'https://example.com/menu',
  name: 'Table 4',
  paused: false,
  folder: { id: 'folder_01kagcpn8me3vs6t7k5sfm2s9p', name: 'Berlin' },
  tags: ['menu', 'summer'],
  scan_count: 0,
  campaign_type: null,
  domain_id: null,
  design: { foregroundColor: '#000000', backgroundColor: '#ffffff' },
  version: 1,
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
};

/** The target of a code. */
export const TARGET_URL = {
  maxLength: MAX_URL_CHARACTERS,
  description: 'The target of scans: an absolute http or https URL without credentials.',
};

/** The name of a code. */
export const NAME = { maxLength: 200, description: 'A name of your own; empty becomes null.', examples: ['Table 4'] };

/** The campaign type of a code. */
export const CAMPAIGN_TYPE = {
  maxLength: 64,
  description: 'Your own term for the kind of campaign.',
  examples: ['flyer'],
};

/** The folder of a code. */
export const FOLDER = {
  maxLength: 100,
  description: 'Folder id or name; an unknown name is created.',
  examples: ['Berlin'],
};

/** The tags of a code. */
export const TAGS = {
  maxItems: MAX_TAGS,
  items: { type: 'string', minLength: 1, maxLength: 100 },
  description: 'Tag ids or names; unknown names are created, duplicates count once.',
  examples: [['menu', 'summer']],
};

/** The body of a request that creates a code. */
export const createBody = z.object({
  target_url: requiredText(TARGET_URL),
  name: nullableText(NAME),
  campaign_type: nullableText(CAMPAIGN_TYPE),
  domain_id: nullableText({
    description: 'A verified custom domain of the account; default: the platform’s.',
    examples: ['domain_01kagd4y0jf1qtqf0m8mvy7z5c'],
  }),
  folder: nullableText(FOLDER),
  tags: nullableTexts(TAGS),
});

/** The body of a request that changes a code. */
export const updateBody = z
  .object({
    target_url: optionalText(TARGET_URL),
    name: nullableText(NAME),
    paused: optionalFlag({ description: 'True pauses the code, false resumes it.', examples: [true] }),
    folder: nullableText({ ...FOLDER, description: `${FOLDER.description} Null removes the code from its folder.` }),
    tags: optionalTexts({ ...TAGS, description: `Replaces all tags. ${TAGS.description}` }),
  })
  .meta({ minProperties: 1 });
