import { parseWebAddress, type WebAddressProblem } from '../../../../common/codes/web-address.ts';
import { type DateProblem, dateProblem } from './draft-instant.ts';
import {
  type ConditionKind,
  type DraftRule,
  languagesOf,
  linesOf,
  parametersOf,
  type TargetDraft,
} from './policy-draft.ts';

/** The field at which an empty condition is reported, by the core's names. */
const FIELDS: Readonly<Record<ConditionKind, string>> = {
  period: 'from',
  weekly: 'weekly.days',
  countries: 'countries',
  languages: 'languages',
  devices: 'devices',
  systems: 'operating_systems',
};

/**
 * The fields of conditions without a value, `policy.rules[0].when.countries`. To the core such a condition does not
 * exist: the rule would apply to everybody.
 */
export function emptyConditions({ rules }: TargetDraft): string[] {
  return rules.flatMap((rule, index) =>
    rule.conditions.filter((kind) => isEmpty(rule, kind)).map((kind) => `policy.rules[${index}].when.${FIELDS[kind]}`),
  );
}

function isEmpty(rule: DraftRule, kind: ConditionKind): boolean {
  if (kind === 'period') return rule.from.typed === '' && rule.until.typed === '';
  if (kind === 'weekly') return rule.weekly.days.length === 0;
  if (kind === 'languages') return languagesOf(rule.languages).length === 0;
  return rule[kind].length === 0;
}

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
