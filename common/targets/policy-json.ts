import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { type Timestamp, timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import {
  type Conditions,
  type Outcome,
  type OutcomeSchema,
  Page,
  type Policy,
  PolicySchema,
  type Rule,
} from '../../proto/gen/signpost/targets/v1/policy_pb.ts';

const instant = z.iso.datetime({ offset: true });

const weekly = z.strictObject({
  time_zone: z.string(),
  days: z.array(z.string()),
  from: z.string(),
  until: z.string(),
});

const conditions = z.strictObject({
  from: instant.exactOptional(),
  until: instant.exactOptional(),
  weekly: weekly.exactOptional(),
  countries: z.array(z.string()).exactOptional(),
  languages: z.array(z.string()).exactOptional(),
  devices: z.array(z.string()).exactOptional(),
  operating_systems: z.array(z.string()).exactOptional(),
});

const variant = z.strictObject({ label: z.string(), weight: z.int().min(0), target_url: z.string() });

const outcome = z.union([
  z.strictObject({ target_url: z.string() }),
  z.strictObject({ split: z.array(variant) }),
  z.strictObject({ page: z.enum(['paused', 'gone']) }),
]);

const rule = z.strictObject({
  name: z.string().exactOptional(),
  when: conditions.exactOptional(),
  then: outcome,
});

/** A policy in JSON, as in files, events and the dashboard. Limits are those of `signpost.targets.v1.Policy`. */
export const policyJsonSchema = z.strictObject({
  rules: z.array(rule).exactOptional(),
  pass_query: z.boolean().exactOptional(),
  parameters: z.record(z.string(), z.string()).exactOptional(),
});

export type PolicyJson = z.infer<typeof policyJsonSchema>;

const PAGES = { paused: Page.PAUSED, gone: Page.GONE } as const;

/** Reads a policy. Returns a sentence that names the field if its form is wrong; the core checks the values. */
export function policyFromJson(json: unknown): { readonly policy: Policy } | { readonly problem: string } {
  const { data, error } = policyJsonSchema.safeParse(json);
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

/** Writes a policy, without what is empty. */
export function policyToJson({ rules, passQuery, parameters }: Policy): PolicyJson {
  return {
    ...(rules.length > 0 ? { rules: rules.map(ruleToJson) } : {}),
    ...(passQuery ? { pass_query: true } : {}),
    ...(Object.keys(parameters).length > 0 ? { parameters: { ...parameters } } : {}),
  };
}

/** `rules[1].when.weekly: Unrecognized key: "day"`. */
function problemOf(issue: z.core.$ZodIssue | undefined): string {
  const path = (issue?.path ?? []).reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
  // Of the three outcomes, none fits.
  const message =
    issue?.code === 'invalid_union' ? 'It must have exactly one of target_url, split and page.' : `${issue?.message}.`;
  return path === '' ? message : `${path}: ${message}`;
}

function conditionsFromJson(json: z.infer<typeof conditions>) {
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

function outcomeFromJson(json: z.infer<typeof outcome>): NonNullable<MessageInitShape<typeof OutcomeSchema>['kind']> {
  if ('target_url' in json) return { case: 'targetUrl', value: json.target_url };
  if ('page' in json) return { case: 'page', value: PAGES[json.page] };
  const variants = json.split.map(({ label, weight, target_url }) => ({ label, weight, targetUrl: target_url }));
  return { case: 'split', value: { variants } };
}

type RuleJson = z.infer<typeof rule>;

function ruleToJson({ name, when, outcome: kind }: Rule): RuleJson {
  return {
    ...(name === '' ? {} : { name }),
    ...(when ? { when: conditionsToJson(when) } : {}),
    then: outcomeToJson(kind),
  };
}

function conditionsToJson(when: Conditions): z.infer<typeof conditions> {
  const { from, until, weekly: times, countries, languages, devices, operatingSystems } = when;
  return {
    ...(from ? { from: isoOf(from) } : {}),
    ...(until ? { until: isoOf(until) } : {}),
    ...(times ? { weekly: { time_zone: times.timeZone, days: times.days, from: times.from, until: times.until } } : {}),
    ...(countries.length > 0 ? { countries } : {}),
    ...(languages.length > 0 ? { languages } : {}),
    ...(devices.length > 0 ? { devices } : {}),
    ...(operatingSystems.length > 0 ? { operating_systems: operatingSystems } : {}),
  };
}

function outcomeToJson(message: Outcome | undefined): RuleJson['then'] {
  switch (message?.kind.case) {
    case 'targetUrl':
      return { target_url: message.kind.value };
    case 'split':
      return {
        split: message.kind.value.variants.map(({ label, weight, targetUrl }) => ({
          label,
          weight,
          target_url: targetUrl,
        })),
      };
    default:
      return { page: message?.kind.value === Page.PAUSED ? 'paused' : 'gone' };
  }
}

function isoOf(timestamp: Timestamp): string {
  return timestampDate(timestamp).toISOString();
}
