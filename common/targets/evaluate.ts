import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Conditions, Page, type Policy, type Rule } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { matchesLanguage } from './language.ts';
import { type AddQuery, queryAdder } from './query.ts';
import { weeklyTimes } from './weekly.ts';

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
  const destination = (url: string): AddQuery => {
    const addQuery = queryAdder(url, policy.parameters);
    return policy.passQuery ? addQuery : () => addQuery('');
  };
  const rules = policy.rules.map((rule, index) => ({
    holds: compileConditions(rule.when),
    decide: compileOutcome(rule, index + 1, destination),
  }));
  const otherwise = destination(targetUrl);
  return (reader) => {
    const rule = rules.find(({ holds }) => holds(reader));
    return rule ? rule.decide(reader) : { rule: 0, variant: '', target: otherwise(reader.query) };
  };
}

type Condition = (reader: Reader) => boolean;

function compileConditions(conditions: Conditions | undefined): Condition {
  const all = conditions ? [...conditionsOf(conditions)] : [];
  return (reader) => all.every((holds) => holds(reader));
}

/** The cheapest first. */
function* conditionsOf(conditions: Conditions): Generator<Condition> {
  const { from, until, weekly } = conditions;
  if (from) {
    const start = timestampMs(from);
    yield ({ at }) => at >= start;
  }
  if (until) {
    const end = timestampMs(until);
    yield ({ at }) => at < end;
  }
  if (weekly) {
    const includes = weeklyTimes(weekly);
    yield ({ at }) => includes(at);
  }
  if (conditions.languages.length > 0) {
    const ranges = conditions.languages.map((range) => range.toLowerCase());
    yield (reader) => {
      const language = reader.language();
      return language !== undefined && ranges.some((range) => matchesLanguage(range, language));
    };
  }
  if (conditions.countries.length > 0) {
    const countries = new Set(conditions.countries);
    yield (reader) => countries.has(reader.country());
  }
  if (conditions.devices.length > 0) {
    const devices = new Set(conditions.devices);
    yield (reader) => devices.has(reader.device());
  }
  if (conditions.operatingSystems.length > 0) {
    const systems = new Set(conditions.operatingSystems);
    yield (reader) => systems.has(reader.operatingSystem());
  }
}

function compileOutcome({ outcome }: Rule, rule: number, destination: (url: string) => AddQuery): Evaluator {
  switch (outcome?.kind.case) {
    case 'targetUrl': {
      const addQuery = destination(outcome.kind.value);
      return ({ query }) => ({ rule, variant: '', target: addQuery(query) });
    }
    case 'split': {
      const variants = outcome.kind.value.variants.map(({ label, weight, targetUrl }) => ({
        label,
        weight,
        addQuery: destination(targetUrl),
      }));
      const total = variants.reduce((sum, { weight }) => sum + weight, 0);
      return (reader) => {
        let rest = reader.share() * total;
        const chosen = variants.find(({ weight }) => {
          rest -= weight;
          return rest < 0;
        });
        const { label, addQuery } = (chosen ?? variants.at(-1)) as (typeof variants)[number];
        return { rule, variant: label, target: addQuery(reader.query) };
      };
    }
    default: {
      const page = outcome?.kind.value ?? Page.GONE;
      return () => ({ rule, variant: '', target: page });
    }
  }
}
