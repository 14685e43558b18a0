import { expect, test } from 'vitest';
import { withOptionName } from './option-names.ts';
import { createProgram } from './program.ts';

const program = await createProgram();

/** A command that was executed with some options. */
function executed(path: string, given: readonly string[] = []) {
  const [group, name] = path.split(' ');
  const command = program.commands.find((each) => each.name() === group)?.commands.find((each) => each.name() === name);
  if (!command) throw new Error(`there is no command ${path}`);
  for (const option of given) command.setOptionValueWithSource(option, 'x', 'cli');
  return command;
}

test.each([
  ['code create', 'target_url', '--target-url'],
  ['code create', 'tags', '--tag'],
  ['code create', 'domain_id', '--domain'],
  ['code create-static', 'wifi.password', '--wifi-password'],
  ['code create-static', 'design', '--foreground'],
  ['code create-static', 'design.background_color', '--background'],
  ['code create-landing', 'landing_page.title', '--title'],
  ['code create-landing', 'landing_page.links[12].url', '--link'],
  ['code update-landing', 'landing_page.foreground_color', '--page-foreground'],
  ['account create', 'overrides.code_limit', '--qr-limit'],
  ['account update', 'overrides.monthly_quota', '--monthly-quota'],
  ['webhook deliveries', 'endpoint_id', '--id'],
  ['webhook update', 'events', '--events'],
  ['folder merge', 'into', '--into'],
  ['target schedule', 'policy.rules[0].outcome.target_url', '--target-url'],
  ['target schedule', 'policy.rules[0].when.weekly.time_zone', '--time-zone'],
  ['target schedule', 'policy.rules[0].when.weekly.days[1]', '--days'],
  ['target schedule', 'policy.rules[0].when.weekly.from', '--from-time'],
  ['target schedule', 'policy.rules[0].when.until', '--until'],
  ['target split', 'policy.rules[2].outcome.split.variants[1].weight', '--variant'],
  ['target preview', 'operating_system', '--operating-system'],
  ['target rollback', 'version', '--to'],
])('%s: an error about %s names %s', (path, field, option) => {
  expect(withOptionName(executed(path), `${field}: must be short.`)).toBe(`${option}: must be short.`);
});

test.each([
  ['policy.rules[0].outcome.split.variants[1].target_url', 'rules[0].then.split[1].target_url: must be short.'],
  ['policy.rules[12].when.countries', 'rules[12].when.countries: must be short.'],
  ['policy.parameters', 'parameters: must be short.'],
  ['policy', 'must be short.'],
])('an error about %s names its place in the file of --policy', (field, sentence) => {
  expect(withOptionName(executed('target set'), `${field}: must be short.`)).toBe(`--policy: ${sentence}`);
});

test('an error about the id names the option that gave it', () => {
  expect(withOptionName(executed('webhook resend', ['delivery']), 'id: is disabled.')).toBe('--delivery: is disabled.');
  expect(withOptionName(executed('webhook test', ['id']), 'id: is disabled.')).toBe('--id: is disabled.');
});

test('other sentences stay as they are', () => {
  for (const sentence of ['Too late: try again.', 'paused: must be a flag.']) {
    expect(withOptionName(executed('code pause'), sentence)).toBe(sentence);
  }
});
