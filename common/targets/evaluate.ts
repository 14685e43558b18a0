import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type Conditions,
  type Outcome,
  Page,
  type Policy,
  type Rule,
} from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { matchesLanguage } from './language.ts';
import { targetsOf } from './policy.ts';
import { type AddQuery, encodeParameters, queryAdder } from './query.ts';
import { type WeeklyTimes, weeklyTimes } from './weekly.ts';

/** What conditions may depend on. The methods are called only by conditions that need them. */
export interface Visitor {
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
  /** Selects a variant: a number from 0 to below 1, evenly distributed over visitors. See `variantShare`. */
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

/**
 * A policy as `decide` evaluates it. What belongs to one code alone are its destinations: the policies of a thousand
 * codes don't fit in the processor's cache, where each access to another object took 0.05 to 0.1 µs.
 */
export interface CompiledPolicy {
  readonly rules: readonly CompiledRule[];
  /** Where the rules lead, in their order, and at the end what the code leads to if no rule decides. */
  readonly destinations: readonly Destination[];
  /** About how much memory the destinations take, in bytes. */
  readonly bytes: number;
}

/** The memory that a destination takes besides its texts, in bytes: a string, or a function that adds parameters. */
const STRING_BYTES = 50;
const ADDER_BYTES = 1_000;

/**
 * The memory that preparing the destinations of a policy may take, in bytes. Twenty long parameters in each of 200 URLs
 * would take 9 MB: of three such codes, each scan would prepare them all again.
 */
const MAX_PREPARED_BYTES = 256 * 1024;

/**
 * Compiles a policy; `targetUrl`: what the code leads to if no rule decides. Throws a RangeError for an unknown zone.
 */
export function compilePolicy(policy: Policy, targetUrl: string): CompiledPolicy {
  const urls = [...targetsOf(policy), targetUrl];
  const parameters = encodeParameters(policy.parameters);
  const added = parameters.reduce((bytes, [, encoded]) => bytes + encoded.length + 1, 0);
  const length = urls.reduce((sum, url) => sum + url.length, 0);
  const preparedBytes = urls.length * (added + (policy.passQuery ? ADDER_BYTES : STRING_BYTES));
  const prepare = destinations(policy.passQuery, parameters);
  const isLarge = preparedBytes > MAX_PREPARED_BYTES;
  return {
    rules: sharedRules(policy.rules),
    destinations: urls.map(isLarge ? (url) => (query) => locationOf(prepare(url), query) : prepare),
    bytes: length + (isLarge ? added + urls.length * STRING_BYTES : preparedBytes),
  };
}

/** Decides what a visitor's scan leads to. It has no clock and does no I/O. */
export function decide({ rules, destinations }: CompiledPolicy, visitor: Visitor): Decision {
  for (let index = 0; index < rules.length; index++) {
    const rule = rules[index] as CompiledRule;
    if (rule.conditions !== undefined && !allHold(rule.conditions, visitor)) continue;
    if (typeof rule.outcome === 'number') return { rule: index + 1, variant: '', target: rule.outcome };
    const { label, destination } = chosen(rule.outcome, visitor);
    return { rule: index + 1, variant: label, target: locationOf(destinations[destination], visitor.query) };
  }
  return { rule: 0, variant: '', target: locationOf(destinations.at(-1), visitor.query) };
}

function locationOf(destination: Destination | undefined, query: string): string {
  return typeof destination === 'function' ? destination(query) : (destination ?? '');
}

/** A `Location`, or what makes one of the query of a scan URL. */
type Destination = string | AddQuery;

/** How a policy changes its targets. Most add nothing to them. */
function destinations(
  passQuery: boolean,
  parameters: ReturnType<typeof encodeParameters>,
): (url: string) => Destination {
  if (passQuery) return (url) => queryAdder(url, parameters);
  if (parameters.length === 0) return (url) => url;
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

/** A rule without its targets. */
interface CompiledRule {
  /** Undefined if it always decides. */
  readonly conditions: CompiledConditions | undefined;
  /** A page to show, or the variants of a split; a rule with one target has one variant without a label. */
  readonly outcome: Page | readonly CompiledVariant[];
}

interface CompiledVariant {
  readonly label: string;
  /** The sum of the weights up to this one. */
  readonly until: number;
  /** The position of its destination in those of the policy. */
  readonly destination: number;
}

/**
 * Most codes of an account have rules that differ only in their targets. They share the compiled ones, which stay in
 * the processor's cache, and conditions are shared among all rules: compiling weekly times takes longer than all the
 * rest.
 */
const MAX_SHARED = 1_000;
/** The total length of their keys. */
const MAX_SHARED_KEYS = 4 * 1024 * 1024;
const compiledRules = new BoundedMap<string, readonly CompiledRule[]>(MAX_SHARED, MAX_SHARED_KEYS);
const compiledConditions = new BoundedMap<string, CompiledConditions>(MAX_SHARED, MAX_SHARED_KEYS);

function sharedRules(rules: readonly Rule[]): readonly CompiledRule[] {
  let destination = 0;
  const key = rules.map(({ when, outcome }) => `${when ? keyOf(when) : 'always'}\n${outcomeKey(outcome)}`).join('\n\n');
  return shared(compiledRules, key, () =>
    rules.map(({ when, outcome }) => {
      const compiled = compileOutcome(outcome, destination);
      if (typeof compiled !== 'number') destination += compiled.length;
      return {
        conditions: when && shared(compiledConditions, keyOf(when), () => compileConditions(when)),
        outcome: compiled,
      };
    }),
  );
}

function shared<Value>(cache: BoundedMap<string, Value>, key: string, compile: () => Value): Value {
  const existing = cache.get(key);
  if (existing) return existing;
  const compiled = compile();
  cache.set(key, compiled, key.length);
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
function allHold(conditions: CompiledConditions, visitor: Visitor): boolean {
  const { from, until, weekly, languages, countries, devices, operatingSystems } = conditions;
  return (
    (from === undefined || visitor.at >= from) &&
    (until === undefined || visitor.at < until) &&
    (weekly === undefined || weekly(visitor.at)) &&
    (languages === undefined || prefers(visitor.language(), languages)) &&
    (countries === undefined || countries.includes(visitor.country())) &&
    (devices === undefined || devices.includes(visitor.device())) &&
    (operatingSystems === undefined || operatingSystems.includes(visitor.operatingSystem()))
  );
}

function prefers(language: string | undefined, ranges: readonly string[]): boolean {
  return language !== undefined && ranges.some((range) => matchesLanguage(range, language));
}

/** `first`: the position of its first destination. */
function compileOutcome(outcome: Outcome | undefined, first: number): CompiledRule['outcome'] {
  switch (outcome?.kind.case) {
    case 'targetUrl':
      return [{ label: '', until: 1, destination: first }];
    case 'split': {
      let until = 0;
      return outcome.kind.value.variants.map(({ label, weight }, index) => {
        until += weight;
        return { label, until, destination: first + index };
      });
    }
    default:
      return outcome?.kind.value ?? Page.GONE;
  }
}

/** All of an outcome but its targets, as text. */
function outcomeKey(outcome: Outcome | undefined): string {
  switch (outcome?.kind.case) {
    case 'targetUrl':
      return 'target';
    case 'split':
      return JSON.stringify(outcome.kind.value.variants.map(({ label, weight }) => [label, weight]));
    default:
      return `page ${outcome?.kind.value}`;
  }
}

function chosen(variants: readonly CompiledVariant[], visitor: Visitor): CompiledVariant {
  const last = variants[variants.length - 1] as CompiledVariant;
  if (variants.length === 1) return last;
  const share = visitor.share() * last.until;
  for (const variant of variants) if (share < variant.until) return variant;
  return last;
}
