import type { MessageInitShape } from '@bufbuild/protobuf';
import { type Timestamp, timestampDate, timestampFromDate, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { parseWebAddress, type WebAddressProblem } from '../../../../common/codes/web-address.ts';
import {
  type Conditions,
  type ConditionsSchema,
  type Outcome,
  type OutcomeSchema,
  Page,
  type Policy,
  type PolicySchema,
} from '../../../../proto/gen/signpost/targets/v1/policy_pb.ts';

/** Conditions as the form shows them; each can be added to a rule once. */
export const CONDITIONS = ['period', 'weekly', 'countries', 'languages', 'devices', 'systems'] as const;
export type ConditionKind = (typeof CONDITIONS)[number];

export interface DraftVariant {
  readonly key: string;
  readonly label: string;
  /** As typed. */
  readonly weight: string;
  readonly url: string;
}

/** An instant of a period. */
export interface DraftInstant {
  /** `YYYY-MM-DDTHH:MM` in the browser's time zone; empty for none. */
  readonly typed: string;
  /** The exact instant until the field is edited: the hour that autumn repeats, and fractions of seconds, can't be typed. */
  readonly unedited?: Timestamp | undefined;
}

/** A rule as it is being edited: everything as typed, and what another choice would need, so that nothing gets lost. */
export interface DraftRule {
  readonly key: string;
  readonly name: string;
  readonly conditions: readonly ConditionKind[];
  readonly from: DraftInstant;
  readonly until: DraftInstant;
  readonly weekly: {
    readonly zone: string;
    readonly days: readonly string[];
    readonly from: string;
    readonly until: string;
  };
  readonly countries: readonly string[];
  /** Separated by commas. */
  readonly languages: string;
  readonly devices: readonly string[];
  readonly systems: readonly string[];
  readonly outcome: 'url' | 'split' | 'paused' | 'gone';
  readonly url: string;
  readonly variants: readonly DraftVariant[];
}

export interface TargetDraft {
  readonly url: string;
  readonly rules: readonly DraftRule[];
  readonly passQuery: boolean;
  /** One `name=value` a line. */
  readonly parameters: string;
  /** The exact parameters until the field is edited: not all names and values can be typed. */
  readonly uneditedParameters?: Readonly<Record<string, string>> | undefined;
  readonly note: string;
}

export function newVariant(label: string): DraftVariant {
  return { key: crypto.randomUUID(), label, weight: '1', url: '' };
}

export function newRule(): DraftRule {
  return {
    key: crypto.randomUUID(),
    name: '',
    conditions: [],
    from: { typed: '' },
    until: { typed: '' },
    weekly: {
      zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      days: ['mon', 'tue', 'wed', 'thu', 'fri'],
      from: '09:00',
      until: '17:00',
    },
    countries: [],
    languages: '',
    devices: [],
    systems: [],
    outcome: 'url',
    url: '',
    variants: [newVariant('a'), newVariant('b')],
  };
}

/** The form for a target. */
export function draftOf({ targetUrl, policy }: { targetUrl: string; policy?: Policy | undefined }): TargetDraft {
  return {
    url: targetUrl,
    rules: (policy?.rules ?? []).map(({ name, when, outcome }) => ({
      ...newRule(),
      name,
      ...(when && conditionsDraft(when)),
      ...outcomeDraft(outcome),
    })),
    passQuery: policy?.passQuery ?? false,
    parameters: Object.entries(policy?.parameters ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join('\n'),
    uneditedParameters: policy?.parameters ?? {},
    note: '',
  };
}

function conditionsDraft(when: Conditions): Partial<DraftRule> {
  const { from, until, weekly, countries, languages, devices, operatingSystems } = when;
  const has: Readonly<Record<ConditionKind, boolean>> = {
    period: from !== undefined || until !== undefined,
    weekly: weekly !== undefined,
    countries: countries.length > 0,
    languages: languages.length > 0,
    devices: devices.length > 0,
    systems: operatingSystems.length > 0,
  };
  return {
    conditions: CONDITIONS.filter((kind) => has[kind]),
    from: { typed: localInstant(from), unedited: from },
    until: { typed: localInstant(until), unedited: until },
    ...(weekly && {
      weekly: { zone: weekly.timeZone, days: weekly.days, from: weekly.from, until: weekly.until },
    }),
    countries,
    languages: languages.join(', '),
    devices,
    systems: operatingSystems,
  };
}

function outcomeDraft(outcome: Outcome | undefined): Partial<DraftRule> {
  const kind = outcome?.kind;
  if (kind?.case === 'targetUrl') return { outcome: 'url', url: kind.value };
  if (kind?.case === 'page') return { outcome: kind.value === Page.GONE ? 'gone' : 'paused' };
  if (kind?.case !== 'split') return {};
  const variants = kind.value.variants.map(({ label, weight, targetUrl }) => ({
    key: crypto.randomUUID(),
    label,
    weight: String(weight),
    url: targetUrl,
  }));
  return { outcome: 'split', variants };
}

/** An instant as `datetime-local` fields have it: in the browser's time zone, to the second. */
function localInstant(instant: Timestamp | undefined): string {
  if (!instant) return '';
  const date = timestampDate(instant);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19).replace(/:00$/, '');
}

/** Whether a form shows something else than before. */
export function isChanged(draft: TargetDraft, before: TargetDraft): boolean {
  return textOf(draft) !== textOf(before);
}

/** Seconds of an instant are a bigint, which JSON does not have. */
function textOf(draft: TargetDraft): string {
  return JSON.stringify(draft, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}

/** The policy that a form describes, whether or not it is valid. */
export function policyOf(draft: TargetDraft): MessageInitShape<typeof PolicySchema> {
  const { rules, passQuery, parameters, uneditedParameters } = draft;
  return {
    rules: rules.map((rule) => ({
      name: rule.name.trim(),
      ...(rule.conditions.length > 0 && { when: conditionsOf(rule) }),
      outcome: outcomeOf(rule),
    })),
    passQuery,
    parameters: uneditedParameters ?? Object.fromEntries(parametersOf(parameters)),
  };
}

function conditionsOf(rule: DraftRule): MessageInitShape<typeof ConditionsSchema> {
  const has = (kind: ConditionKind) => rule.conditions.includes(kind);
  const [from, until] = [instantOf(rule.from), instantOf(rule.until)];
  return {
    ...(has('period') && from && { from }),
    ...(has('period') && until && { until }),
    ...(has('weekly') && {
      weekly: {
        timeZone: rule.weekly.zone.trim(),
        days: [...rule.weekly.days],
        from: rule.weekly.from,
        until: rule.weekly.until,
      },
    }),
    countries: has('countries') ? [...rule.countries] : [],
    languages: has('languages') ? languagesOf(rule.languages) : [],
    devices: has('devices') ? [...rule.devices] : [],
    operatingSystems: has('systems') ? [...rule.systems] : [],
  };
}

function outcomeOf({ outcome, url, variants }: DraftRule): MessageInitShape<typeof OutcomeSchema> {
  if (outcome === 'url') return { kind: { case: 'targetUrl', value: url.trim() } };
  if (outcome !== 'split') return { kind: { case: 'page', value: outcome === 'gone' ? Page.GONE : Page.PAUSED } };
  const value = {
    variants: variants.map(({ label, weight, url }) => ({
      label: label.trim(),
      weight: weightOf(weight),
      targetUrl: url.trim(),
    })),
  };
  return { kind: { case: 'split', value } };
}

/** A weight as typed; 0, which the core rejects with its rule, if it is none. */
export function weightOf(typed: string): number {
  return /^\d{1,9}$/.test(typed.trim()) ? Number(typed) : 0;
}

/** Why what was typed into a `datetime-local` field is no instant. */
export type DateProblem = 'badYear' | 'skippedTime';

/** The fields of instants that can't be sent, `policy.rules[0].when.from`: without it the rule would hold now. */
export function badDates({ rules }: TargetDraft): ReadonlyMap<string, DateProblem> {
  const found = new Map<string, DateProblem>();
  for (const [index, rule] of rules.entries()) {
    for (const field of ['from', 'until'] as const) {
      const problem = rule[field].unedited ? undefined : dateProblem(rule[field].typed);
      if (problem && rule.conditions.includes('period')) found.set(`policy.rules[${index}].when.${field}`, problem);
    }
  }
  return found;
}

/** The fields with an address that the core would reject, `policy.rules[0].outcome.target_url`. */
export function badAddresses({ url, rules }: TargetDraft): ReadonlyMap<string, WebAddressProblem> {
  const found = new Map<string, WebAddressProblem>();
  const check = (field: string, typed: string) => {
    const address = parseWebAddress(typed);
    if ('problem' in address) found.set(field, address.problem);
  };
  check('target_url', url);
  for (const [index, { outcome, url: ruleUrl, variants }] of rules.entries()) {
    const path = `policy.rules[${index}].outcome`;
    if (outcome === 'url') check(`${path}.target_url`, ruleUrl);
    if (outcome === 'split')
      for (const [at, variant] of variants.entries()) check(`${path}.split.variants[${at}].target_url`, variant.url);
  }
  return found;
}

/** Why the parameters cannot be sent, as far as the form can tell. */
export function parametersProblem(draft: Pick<TargetDraft, 'parameters' | 'uneditedParameters'>) {
  const { parameters, uneditedParameters } = draft;
  if (uneditedParameters) return undefined;
  if (linesOf(parameters).some((line) => line.trim().indexOf('=') <= 0)) return 'malformed';
  const names = parametersOf(parameters).map(([name]) => name);
  return new Set(names).size < names.length ? 'repeated' : undefined;
}

/** The names and values in the order of their lines. */
function parametersOf(typed: string): [string, string][] {
  return linesOf(typed).map((line) => [line.split('=', 1)[0]?.trim() ?? '', line.slice(line.indexOf('=') + 1).trim()]);
}

export function languagesOf(typed: string): string[] {
  return typed.split(/[\s,]+/).filter((tag) => tag !== '');
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

function instantOf({ typed, unedited }: DraftInstant): Timestamp | undefined {
  return unedited ?? typedInstant(typed);
}

/**
 * Which one an instant is of the two with its local time, in the hour that autumn repeats; undefined in other hours. A typed
 * time means the first.
 */
export function repetitionOf(draft: DraftInstant): 'first' | 'second' | undefined {
  const instant = instantOf(draft);
  if (!instant) return undefined;
  const shifted = (ms: number) => localInstant(timestampFromMs(timestampMs(instant) + ms));
  // Most clocks go back by an hour, those of Lord Howe Island by half of one.
  const isLike = (sign: number) => [30, 60].some((minutes) => shifted(sign * minutes * 60_000) === shifted(0));
  if (isLike(1)) return 'first';
  return isLike(-1) ? 'second' : undefined;
}

/** The instant of a `datetime-local` field; undefined if it has none, or none that can be sent. */
export function typedInstant(typed: string): Timestamp | undefined {
  return typed === '' || dateProblem(typed) ? undefined : timestampFromDate(new Date(typed));
}

/**
 * Such fields let people type years of six digits, which `Date` does not understand, and the hour that spring leaves out,
 * for which `Date` takes the one after it.
 */
export function dateProblem(typed: string): DateProblem | undefined {
  if (typed === '') return undefined;
  const date = new Date(typed);
  const year = date.getUTCFullYear();
  if (!(year >= 1 && year <= 9_999)) return 'badYear';
  const [, day, hours, minutes] = /-(\d+)T(\d+):(\d+)/.exec(typed)?.map(Number) ?? [];
  const isKept = date.getDate() === day && date.getHours() === hours && date.getMinutes() === minutes;
  return isKept ? undefined : 'skippedTime';
}
