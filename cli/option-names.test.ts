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
])('%s: an error about %s names %s', (path, field, option) => {
  expect(withOptionName(executed(path), `${field}: must be short.`)).toBe(`${option}: must be short.`);
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
