import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type Conditions,
  type ConditionsSchema,
  type Outcome,
  type OutcomeSchema,
  Page,
  type Policy,
  type PolicySchema,
} from '../../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { type DraftInstant, instantDraft, instantOf } from './draft-instant.ts';

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
    from: instantDraft(from),
    until: instantDraft(until),
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

/** The names and values in the order of their lines. */
export function parametersOf(typed: string): [string, string][] {
  return linesOf(typed).map((line) => [line.split('=', 1)[0]?.trim() ?? '', line.slice(line.indexOf('=') + 1).trim()]);
}

export function languagesOf(typed: string): string[] {
  return typed.split(/[\s,]+/).filter((tag) => tag !== '');
}

export function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}
