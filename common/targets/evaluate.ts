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

/** Compiles a policy; `targetUrl`: what the code leads to if no rule decides. Throws a RangeError for an unknown zone. */
export function compilePolicy(policy: Policy, targetUrl: string): Evaluator {
  const destination = destinations(policy);
  const rules = policy.rules.map((rule, index) => ({
    conditions: rule.when && sharedConditions(rule.when),
    decide: compileOutcome(rule, index + 1, destination),
  }));
  const otherwise = destination(targetUrl);
  return (reader) => {
    for (const { conditions, decide } of rules) {
      if (conditions === undefined || allHold(conditions, reader)) return decide(reader);
    }
    return { rule: 0, variant: '', target: otherwise(reader.query) };
  };
}

/** How a policy changes its targets. Most add nothing to them, and are compiled in a fraction of the time and memory. */
function destinations({ passQuery, parameters }: Policy): (url: string) => AddQuery {
  if (passQuery) return (url) => queryAdder(url, parameters);
  if (Object.keys(parameters).length === 0) return always;
  return (url) => always(queryAdder(url, parameters)(''));
}

/** A function of its own, so that the closure retains nothing but the URL. */
function always(url: string): AddQuery {
  return () => url;
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
 * The rules of most codes of an account have the same conditions, whose compiled form they share: compiling weekly times
 * takes longer than all the rest of a policy, and shared conditions stay in the processor's cache.
 */
const MAX_CONDITIONS = 1_000;
const compiledConditions = new Map<string, CompiledConditions>();

function sharedConditions(when: Conditions): CompiledConditions {
  const key = keyOf(when);
  const existing = compiledConditions.get(key);
  if (existing) return existing;
  const compiled = compileConditions(when);
  if (compiledConditions.size >= MAX_CONDITIONS) compiledConditions.clear();
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

function compileOutcome({ outcome }: Rule, rule: number, destination: (url: string) => AddQuery): Evaluator {
  switch (outcome?.kind.case) {
    case 'targetUrl':
      return leadsTo(rule, destination(outcome.kind.value));
    case 'split':
      return splits(
        rule,
        outcome.kind.value.variants.map(({ label, weight, targetUrl }) => ({
          label,
          weight,
          addQuery: destination(targetUrl),
        })),
      );
    default:
      return shows(rule, outcome?.kind.value ?? Page.GONE);
  }
}

const leadsTo =
  (rule: number, addQuery: AddQuery): Evaluator =>
  ({ query }) => ({ rule, variant: '', target: addQuery(query) });

const shows =
  (rule: number, page: Page): Evaluator =>
  () => ({ rule, variant: '', target: page });

interface CompiledVariant {
  readonly label: string;
  readonly weight: number;
  readonly addQuery: AddQuery;
}

function splits(rule: number, variants: readonly CompiledVariant[]): Evaluator {
  const total = variants.reduce((sum, { weight }) => sum + weight, 0);
  return (reader) => {
    let rest = reader.share() * total;
    const chosen = variants.find(({ weight }) => {
      rest -= weight;
      return rest < 0;
    });
    const { label, addQuery } = (chosen ?? variants.at(-1)) as CompiledVariant;
    return { rule, variant: label, target: addQuery(reader.query) };
  };
}
