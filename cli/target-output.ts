import { timeJson } from '../common/contract/code-json.ts';
import { requiredField } from '../common/contract/required-field.ts';
import type { PolicyJson } from '../common/targets/policy-json.ts';
import { policyToJson } from '../common/targets/policy-to-json.ts';
import { Page, type Policy } from '../proto/gen/signpost/targets/v1/policy_pb.ts';
import type { PreviewTargetResponse, Target } from '../proto/gen/signpost/targets/v1/targets_pb.ts';
import { type DisplayRecord, fields, fittedTable, onOneLine, print, table } from './output.ts';
import { age, dateAndTime } from './times.ts';

/** Prints the target that a command has set. */
export function printChanged(json: boolean, changed: Target | undefined): void {
  const target = requiredField(changed, 'target');
  const { version, targetUrl, policy } = target;
  const shown = { version, target_url: targetUrl, policy: policy ? policyToJson(policy) : null };
  print(json, shown, () => `${fields({ version, target_url: targetUrl })}${rulesOf(target)}`);
}

/** Prints a version of a target. */
export function printVersion(json: boolean, found: Target | undefined): void {
  const target = requiredField(found, 'target');
  print(json, versionJson(target), () => `${fields(versionFields(target, new Date()))}${rulesOf(target)}`);
}

/** Prints versions of a target, a line each for people. */
export function printVersions(json: boolean, versions: readonly Target[]): void {
  const now = new Date();
  const rows = versions.map((target) => ({
    version: target.version,
    since: age(timeJson(target.createdAt), now),
    author: target.author || null,
    note: target.note || null,
    target: `${rulesCounted(target.policy)}${target.targetUrl}`,
  }));
  print(json, versions.map(versionJson), () => fittedTable(rows, { note: 10, author: 10, target: 10 }));
}

/** Prints what a scan would lead to. */
export function printPreview(json: boolean, { result, rule, ruleName, variant }: PreviewTargetResponse): void {
  const target =
    result.case === 'page'
      ? { target_url: null, page: PAGE_NAMES[result.value] ?? null }
      : { target_url: result.value ?? null };
  const shown = { ...target, rule: rule || null, variant: variant || null };
  print(json, shown, () => fields({ ...shown, ...(ruleName === '' ? {} : { rule: `${rule} (${ruleName})` }) }));
}

const PAGE_NAMES: Readonly<Partial<Record<Page, string>>> = { [Page.PAUSED]: 'paused', [Page.GONE]: 'gone' };

function versionJson({ version, targetUrl, policy, author, note, createdAt }: Target) {
  return {
    version,
    target_url: targetUrl,
    policy: policy ? policyToJson(policy) : null,
    author,
    note,
    created_at: timeJson(createdAt),
  };
}

function versionFields({ version, targetUrl, author, note, createdAt }: Target, now: Date): DisplayRecord {
  return {
    version,
    target_url: targetUrl,
    author: author || null,
    note: note || null,
    since: dateAndTime(timeJson(createdAt), now),
  };
}

function rulesCounted(policy: Policy | undefined): string {
  const count = policy?.rules.length ?? 0;
  return count === 0 ? '' : `(${count} ${count === 1 ? 'rule' : 'rules'}) `;
}

/** A table of the policy's rules, and what is added to their targets; empty if there is no policy. */
function rulesOf({ policy, targetUrl }: Target): string {
  if (!policy) return '';
  const { rules = [], pass_query, parameters = {} } = policyToJson(policy);
  const rows = rules.flatMap((rule, index) =>
    leadsTo(rule.then).map((target, line) =>
      line === 0
        ? { rule: index + 1, name: rule.name ?? null, when: conditions(rule.when), target }
        : { rule: '', name: '', when: '', target },
    ),
  );
  const otherwise = { rule: null, name: null, when: 'otherwise', target: targetUrl };
  const added = [
    ...Object.entries(parameters).map(([name, value]) => `${name}=${value}`),
    ...(pass_query ? ['the query of the scan'] : []),
  ];
  return [
    ...(rules.length === 0 ? [] : ['', '', table([...rows, otherwise])]),
    ...(added.length === 0 ? [] : [rules.length === 0 ? '\n' : '', `Adds ${added.map(onOneLine).join(', ')}`]),
  ].join('\n');
}

type RuleJson = NonNullable<PolicyJson['rules']>[number];

function leadsTo({ target_url, split, page }: RuleJson['then']): string[] {
  if (split) return split.map((variant) => `${variant.label} (${variant.weight}): ${variant.target_url}`);
  return [target_url ?? `the page “${page}”`];
}

function conditions(when: NonNullable<RuleJson['when']> = {}): string {
  const { from, until, weekly, countries, languages, devices, operating_systems } = when;
  const lists = { country: countries, language: languages, device: devices, system: operating_systems };
  const all = [
    ...(from === undefined ? [] : [`from ${from}`]),
    ...(until === undefined ? [] : [`until ${until}`]),
    ...(weekly ? [`${weekly.days.join(', ')} ${weekly.from}–${weekly.until} ${weekly.time_zone}`] : []),
    ...Object.entries(lists).flatMap(([name, values]) => (values ? [`${name} ${values.join(' or ')}`] : [])),
  ];
  return all.join('; ') || 'always';
}
