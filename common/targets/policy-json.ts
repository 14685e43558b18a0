import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import { type OutcomeSchema, Page, type Policy, PolicySchema } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';

const PAGE_NAMES = ['paused', 'gone'] as const;
const PAGES = { paused: Page.PAUSED, gone: Page.GONE } as const;

/**
 * The schema of a policy; `object` makes its objects, which accept or reject unknown fields, and `instant` is RFC 3339.
 */
function policySchema(object: typeof z.object, instant: z.ZodType<string>) {
  const texts = (description: string) => z.array(z.string()).exactOptional().meta({ description });

  const weekly = object({
    time_zone: z.string().meta({ description: 'A name of the IANA time zone database: `Europe/Berlin`.' }),
    days: z.array(z.string()).meta({ description: 'The days on which it begins: `mon` to `sun`.' }),
    from: z.string().meta({ description: '`HH:MM`, local time.' }),
    until: z.string().meta({ description: '`HH:MM`, local time; of the next day if it is not later than `from`.' }),
  }).meta({ id: 'PolicyWeekly', description: 'Times that recur every week.' });

  const conditions = object({
    from: instant.exactOptional().meta({ format: 'date-time', description: 'Holds from this instant on.' }),
    until: instant.exactOptional().meta({ format: 'date-time', description: 'Holds until just before this instant.' }),
    weekly: weekly.exactOptional(),
    countries: texts('ISO 3166-1 alpha-2 in capitals, or `unknown`.'),
    languages: texts('Language ranges (RFC 4647, basic filtering) for the language that the visitor prefers.'),
    devices: texts('`mobile`, `tablet`, `desktop`, `bot` or `other`.'),
    operating_systems: texts('In lower case, or `unknown`.'),
  }).meta({ id: 'PolicyConditions', description: 'When a rule applies: all conditions must hold.' });

  const variant = object({
    label: z.string().meta({ description: 'Its name in analytics.' }),
    weight: z.uint32().meta({ description: 'Its share is this over the sum of all weights.' }),
    target_url: z.string().meta({ description: 'Where its visitors are redirected.' }),
  }).meta({ id: 'PolicyVariant', description: 'One target of a split.' });

  const outcome = object({
    target_url: z.string().exactOptional().meta({ description: 'Where visitors are redirected.' }),
    split: z.array(variant).exactOptional().meta({ description: 'Targets of which each visitor gets one.' }),
    page: z.enum(PAGE_NAMES).exactOptional().meta({ description: 'A page of the platform.' }),
  })
    .refine((kinds) => Object.keys(kinds).length === 1, {
      error: 'It must have exactly one of target_url, split and page',
    })
    .meta({ id: 'PolicyOutcome', description: 'What scans lead to: exactly one of these.' });

  const rule = object({
    name: z.string().exactOptional().meta({ description: 'What previews and lists call it.' }),
    when: conditions.exactOptional(),
    then: outcome,
  }).meta({ id: 'PolicyRule', description: 'A rule of a policy; without `when` it always applies.' });

  return object({
    rules: z
      .array(rule)
      .exactOptional()
      .meta({ description: 'The first one whose conditions all hold decides; if none does, `target_url` applies.' }),
    pass_query: z
      .boolean()
      .exactOptional()
      .meta({ description: 'Whether query parameters of the scan URL are added to the target.' }),
    parameters: z
      .record(z.string(), z.string())
      .exactOptional()
      .meta({ description: 'Query parameters that are added to every target.' }),
  }).meta({ id: 'Policy', description: 'What precedes `target_url` of a dynamic code.' });
}

/** A policy in JSON, as in files, events and the dashboard. Limits are those of `signpost.targets.v1.Policy`. */
export const policyJsonSchema = policySchema(z.object, z.string());

/** For what people write, where an unknown field is a mistake. */
const strictPolicySchema = policySchema(z.strictObject as unknown as typeof z.object, z.iso.datetime({ offset: true }));

export type PolicyJson = z.infer<typeof policyJsonSchema>;
export type RuleJson = NonNullable<PolicyJson['rules']>[number];
export type ConditionsJson = NonNullable<RuleJson['when']>;

/** Reads a policy. Returns a sentence that names the field if its form is wrong; the core checks the values. */
export function policyFromJson(json: unknown): { readonly policy: Policy } | { readonly problem: string } {
  const { data, error } = strictPolicySchema.safeParse(json);
  // The schema would drop it.
  if (Object.hasOwn((json as PolicyJson | null)?.parameters ?? {}, '__proto__')) {
    return { problem: 'parameters: A parameter can’t be named __proto__.' };
  }
  if (!data) return { problem: problemOf(error.issues[0]) };
  const policy = create(PolicySchema, {
    rules: (data.rules ?? []).map(({ name = '', when, then }) => ({
      name,
      ...(when ? { when: conditionsFromJson(when) } : {}),
      outcome: { kind: outcomeFromJson(then) },
    })),
    passQuery: data.pass_query ?? false,
    parameters: data.parameters ?? {},
  });
  return { policy };
}

/** `rules[1].when.weekly: Unrecognized key: "day"`. */
function problemOf(issue: z.core.$ZodIssue | undefined): string {
  const path = (issue?.path ?? []).reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
  const message = `${issue?.message}.`;
  return path === '' ? message : `${path}: ${message}`;
}

function conditionsFromJson(json: ConditionsJson) {
  const { from, until, weekly: times } = json;
  return {
    ...(from === undefined ? {} : { from: timestampFromDate(new Date(from)) }),
    ...(until === undefined ? {} : { until: timestampFromDate(new Date(until)) }),
    ...(times ? { weekly: { timeZone: times.time_zone, days: times.days, from: times.from, until: times.until } } : {}),
    countries: json.countries ?? [],
    languages: json.languages ?? [],
    devices: json.devices ?? [],
    operatingSystems: json.operating_systems ?? [],
  };
}

function outcomeFromJson(json: RuleJson['then']): NonNullable<MessageInitShape<typeof OutcomeSchema>['kind']> {
  if (json.target_url !== undefined) return { case: 'targetUrl', value: json.target_url };
  if (json.page !== undefined) return { case: 'page', value: PAGES[json.page] };
  const variants = (json.split ?? []).map(({ label, weight, target_url }) => ({
    label,
    weight,
    targetUrl: target_url,
  }));
  return { case: 'split', value: { variants } };
}
