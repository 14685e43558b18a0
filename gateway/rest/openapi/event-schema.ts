import { z } from 'zod';
import { namesOf, ROLE_BY_NAME } from '../../../common/contract/names.ts';
import { policyJsonSchema } from '../../../common/targets/policy-json.ts';
import { batchExample, batchSchema } from '../resources/batch-schema.ts';
import { codeExample, codeSchema } from '../resources/code-schema.ts';

const short = z.string().meta({ description: 'The path of its scan URL: `/r/{short_code}`.' });
const code = codeSchema
  .extend({ short, policy: policyJsonSchema.exactOptional() })
  .meta({ id: 'CodeData', description: 'The code as REST shows it, and its policy if it has one.' });
const example = { ...codeExample, short: `/r/${codeExample.short_code}` };

const domain = z
  .object({
    id: z.string().meta({ description: '`domain_…`.' }),
    hostname: z.string().meta({ description: 'In lower case, without a port.' }),
    state: z.literal('live'),
    created_at: z.string().meta({ format: 'date-time', description: 'When it was added.' }),
  })
  .meta({ id: 'DomainData', description: 'A custom domain.' });

const member = z
  .object({
    id: z.string().meta({ description: '`mbr_…`.' }),
    email: z.string(),
    role: z.enum(namesOf(ROLE_BY_NAME)),
    created_at: z.string().meta({ format: 'date-time', description: 'When the member was added.' }),
  })
  .meta({ id: 'MemberData', description: 'A member of a team.' });
const memberExample = {
  id: 'mbr_01kagd5p3ge8rrx6n1b0m6c2tz',
  email: 'ada@example.com',
  role: 'editor',
  created_at: '2026-11-20T09:30:00.000Z',
};

/** An event type: when it is emitted, its data, and the prefix of its subject's id. */
export interface EventDescription {
  readonly summary: string;
  readonly data: z.ZodType;
  readonly example: { readonly id: string; readonly [name: string]: unknown };
  readonly subject: string;
}

/** The events, on Kafka and by webhooks. */
export const EVENTS_BY_TYPE = {
  'qr.created': { summary: 'A code was created, alone or in a batch.', data: code, example, subject: 'qr' },
  'qr.updated': {
    summary: 'A code was changed; `changed` names the fields, `deleted` if it was restored.',
    data: code
      .extend({
        changed: z
          .array(z.string())
          .meta({ description: 'Names of the changed fields; `deleted` for a restored code.' }),
      })
      .meta({
        id: 'ChangedCodeData',
        description: 'The code as REST shows it after the change, and its policy if it has one.',
      }),
    example: { ...example, paused: true, changed: ['paused'] },
    subject: 'qr',
  },
  'qr.archived': { summary: 'A code was deleted.', data: code, example, subject: 'qr' },
  'bulk.completed': {
    summary: 'Every row of a batch is final; once for each batch.',
    data: batchSchema,
    example: batchExample,
    subject: 'batch',
  },
  'domain.live': {
    summary: 'A custom domain resolves to the platform and serves.',
    data: domain,
    example: {
      id: 'domain_01kagd4y0jf1qtqf0m8mvy7z5c',
      hostname: 'qr.example.com',
      state: 'live',
      created_at: '2026-11-20T09:30:00.000Z',
    },
    subject: 'domain',
  },
  'team.member_added': { summary: 'A member joined.', data: member, example: memberExample, subject: 'mbr' },
  'team.member_removed': { summary: 'A member left.', data: member, example: memberExample, subject: 'mbr' },
} as const satisfies Readonly<Record<string, EventDescription>>;
