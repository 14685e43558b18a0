import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Conditions, Page, type Policy, type Rule } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { matchesLanguage } from './language.ts';
import { type AddQuery, queryAdder } from './query.ts';
import { type WeeklyTimes, weeklyTimes } from './weekly.ts';

/** What conditions may depend on. The methods are called only by conditions that need them. */
export interface Reader {
  /** When the scan is answered, in ms since 1970. */
  readonly at: number;
  /** ISO 3166-1 alpha-2 in capitals, or `unknown`. */
  country(): string;
  /** The preferred language in lower case; undefined if none is known. */
  language(): string | undefined;
  /** `mobile`, `tablet`, `desktop`, `bot` or `other`. */
  device(): string;
  /** In lower case, or `unknown`. */
  operatingSystem(): string;
  /** Selects a variant: a number from 0 to below 1, evenly distributed over readers. See `variantShare`. */
  share(): number;
  /** The query of the scan URL, without its `?`; empty if it has none. */
  readonly query: string;
}

/** What a scan leads to: a URL or a page, and which rule and variant decided. */
export interface Decision {
  /** Counted from 1; 0 if no rule decided. */
  readonly rule: number;
  /** The label of the split's variant; empty if the rule has no split. */
  readonly variant: string;
  /** A `Location`, or the page to show. */
  readonly target: string | Page;
}

/** Decides what a reader's scan leads to. It has no clock and does no I/O. */
export type Evaluator = (reader: Reader) => Decision;

/**
 * Compiles a policy; `targetUrl`: what the code leads to if no rule decides. Throws a RangeError for an unknown zone.
 *
 * Of what belongs to one code alone, a scan reads as little as possible: the policies of a thousand codes don't fit in the
 * processor's cache.
 */
export function compilePolicy(policy: Policy, targetUrl: string): Evaluator {
  const destination = destinations(policy);
  const conditions = sharedConditions(policy.rules);
  const outcomes = policy.rules.map((rule, index) => compileOutcome(rule, index + 1, destination));
  const otherwise = leadsTo(0, destination(targetUrl));
  return (reader) => {
    for (let index = 0; index < conditions.length; index++) {
      const each = conditions[index];
      if (each === undefined || allHold(each, reader)) return (outcomes[index] ?? otherwise)(reader);
    }
    return otherwise(reader);
  };
}

/** A `Location`, or what makes one of the query of a scan URL. */
type Destination = string | AddQuery;

/** How a policy changes its targets. Most add nothing to them. */
function destinations({ passQuery, parameters }: Policy): (url: string) => Destination {
  if (passQuery) return (url) => queryAdder(url, parameters);
  if (Object.keys(parameters).length === 0) return (url) => url;
  return (url) => queryAdder(url, parameters)('');
}

/** The conditions of a rule; those that it does not have are undefined. */
interface CompiledConditions {
  /** In ms since 1970. */
  readonly from: number | undefined;
  /** In ms since 1970. */
  readonly until: number | undefined;
  readonly weekly: WeeklyTimes | undefined;
  /** Ranges in lower case. */
  readonly languages: readonly string[] | undefined;
  readonly countries: readonly string[] | undefined;
  readonly devices: readonly string[] | undefined;
  readonly operatingSystems: readonly string[] | undefined;
}

/**
 * The conditions of each rule; undefined for one that always decides. Most codes of an account have rules with the same
 * conditions, whose compiled form they share: compiling weekly times takes longer than all the rest of a policy, and shared
 * conditions stay in the processor's cache.
 */
type RuleConditions = readonly (CompiledConditions | undefined)[];
const MAX_SHARED = 1_000;
const compiledConditions = new Map<string, RuleConditions>();

function sharedConditions(rules: readonly Rule[]): RuleConditions {
  const key = rules.map(({ when }) => (when ? keyOf(when) : 'always')).join('\n\n');
  const existing = compiledConditions.get(key);
  if (existing) return existing;
  const compiled = rules.map(({ when }) => when && compileConditions(when));
  if (compiledConditions.size >= MAX_SHARED) compiledConditions.clear();
  compiledConditions.set(key, compiled);
  return compiled;
}

/** No value contains a comma or a line break. `toBinary` takes 2.5 µs for each rule. */
function keyOf({ from, until, weekly, languages, countries, devices, operatingSystems }: Conditions): string {
  const times = `${from?.seconds},${from?.nanos},${until?.seconds},${until?.nanos}`;
  const week = weekly && `${weekly.timeZone},${weekly.from},${weekly.until},${weekly.days}`;
  return `${times}\n${week}\n${languages}\n${countries}\n${devices}\n${operatingSystems}`;
}

function compileConditions(when: Conditions): CompiledConditions {
  return {
    from: when.from && timestampMs(when.from),
    until: when.until && timestampMs(when.until),
    weekly: when.weekly && weeklyTimes(when.weekly),
    languages: unlessEmpty(when.languages)?.map((range) => range.toLowerCase()),
    countries: unlessEmpty(when.countries),
    devices: unlessEmpty(when.devices),
    operatingSystems: unlessEmpty(when.operatingSystems),
  };
}

function unlessEmpty(values: readonly string[]): readonly string[] | undefined {
  return values.length > 0 ? values : undefined;
}

/** The cheapest first. */
function allHold(conditions: CompiledConditions, reader: Reader): boolean {
  const { from, until, weekly, languages, countries, devices, operatingSystems } = conditions;
  return (
    (from === undefined || reader.at >= from) &&
    (until === undefined || reader.at < until) &&
    (weekly === undefined || weekly(reader.at)) &&
    (languages === undefined || prefers(reader.language(), languages)) &&
    (countries === undefined || countries.includes(reader.country())) &&
    (devices === undefined || devices.includes(reader.device())) &&
    (operatingSystems === undefined || operatingSystems.includes(reader.operatingSystem()))
  );
}

function prefers(language: string | undefined, ranges: readonly string[]): boolean {
  return language !== undefined && ranges.some((range) => matchesLanguage(range, language));
}

function compileOutcome({ outcome }: Rule, rule: number, destination: (url: string) => Destination): Evaluator {
  switch (outcome?.kind.case) {
    case 'targetUrl':
      return leadsTo(rule, destination(outcome.kind.value));
    case 'split':
      return splits(
        outcome.kind.value.variants.map(({ label, weight, targetUrl }) => ({
          weight,
          decide: leadsTo(rule, destination(targetUrl), label),
        })),
      );
    default:
      return always({ rule, variant: '', target: outcome?.kind.value ?? Page.GONE });
  }
}

/** A decision that depends on nothing but the policy is made once, not for each scan. */
function leadsTo(rule: number, destination: Destination, variant = ''): Evaluator {
  if (typeof destination === 'string') return always({ rule, variant, target: destination });
  return ({ query }) => ({ rule, variant, target: destination(query) });
}

const always =
  (decision: Decision): Evaluator =>
  () =>
    decision;

interface CompiledVariant {
  readonly weight: number;
  readonly decide: Evaluator;
}

function splits(variants: readonly CompiledVariant[]): Evaluator {
  const total = variants.reduce((sum, { weight }) => sum + weight, 0);
  return (reader) => {
    let rest = reader.share() * total;
    const chosen = variants.find(({ weight }) => {
      rest -= weight;
      return rest < 0;
    });
    return ((chosen ?? variants.at(-1)) as CompiledVariant).decide(reader);
  };
}
