import type { Command } from 'commander';

/** Options whose name is not that of the field they set. A field's name begins the paths of the fields inside it. */
const OPTION_BY_FIELD: Readonly<Record<string, string>> = {
  tags: '--tag',
  domain_id: '--domain',
  endpoint_id: '--id',
  design: '--foreground',
  'design.background_color': '--background',
  'landing_page.links': '--link',
  'landing_page.foreground_color': '--page-foreground',
  'landing_page.background_color': '--page-background',
  'overrides.code_limit': '--qr-limit',
  policy: '--policy',
  'policy.rules.when.weekly.from': '--from-time',
  'policy.rules.when.weekly.until': '--until-time',
  'policy.rules.outcome.split': '--variant',
  version: '--to',
};

/** Options that name what a command works on. */
const ID_OPTIONS = ['--id', '--into', '--delivery'];

/** Those of `ID_OPTIONS` that `command` was given. */
export function givenIds(command: Command): string[] {
  return command.options.flatMap((option) =>
    option.long && ID_OPTIONS.includes(option.long) && command.getOptionValueSource(option.attributeName()) === 'cli'
      ? [option.long]
      : [],
  );
}

/**
 * The option of `command` that sets a field of a request of the core, such as `--page-foreground` for
 * `landing_page.foreground_color`; undefined if it has none.
 */
function optionOf(command: Command, field: string): string | undefined {
  if (field === 'id') return givenIds(command)[0];
  const names = field.replace(/\[\d+\]/g, '').split('.');
  const aliases = names.map((_, end) => OPTION_BY_FIELD[names.slice(0, names.length - end).join('.')]);
  const [last = ''] = names.slice(-1);
  const candidates = [...aliases, `--${names.join('-')}`, `--${last}`].map((name) => name?.replaceAll('_', '-'));
  return candidates.find((candidate) => command.options.some(({ long }) => long === candidate));
}

/**
 * A sentence of the core about a field, `target_url: must …`, with the option that sets the field:
 * `--target-url: must …`.
 */
export function withOptionName(command: Command, sentence: string): string {
  const [, field = '', description = ''] = /^([\w.[\]]+): (.+)$/s.exec(sentence) ?? [];
  const option = optionOf(command, field);
  if (option === undefined) return sentence;
  return option === '--policy' ? `--policy: ${policyPath(field)}${description}` : `${option}: ${description}`;
}

/**
 * The path of a field in the file of a policy: `rules[0].then.split[1].target_url: `; empty for the policy as a whole.
 */
export function policyPath(field: string): string {
  const path = field
    .replace(/^policy\.?/, '')
    .replace(/(?<=^rules\[\d+\])\.outcome/, '.then')
    .replace('.split.variants', '.split');
  return path === '' ? '' : `${path}: `;
}
