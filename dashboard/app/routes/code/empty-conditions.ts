import { type ConditionKind, type DraftRule, languagesOf, type TargetDraft } from './policy-draft.ts';

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
