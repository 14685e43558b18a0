import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createProgram } from '../cli/program.ts';
import { variablesTable } from '../common/runtime/variables.ts';
import { DASHBOARD_VARIABLES } from '../dashboard/server/config.ts';
import { GATEWAY_VARIABLES } from '../gateway/config.ts';
import { CORE_VARIABLES } from '../src/config.ts';

/**
 * Writes the README's tables of variables from the lists that the programs use, and the list of commands from their
 * definitions: a part of `npm run generate`.
 */
const README = resolve(import.meta.dirname, '../README.md');
const COMMANDS = resolve(import.meta.dirname, 'command-line.md');

let readme = readFileSync(README, 'utf8');
for (const [name, variables] of Object.entries({
  core: CORE_VARIABLES,
  gateway: GATEWAY_VARIABLES,
  dashboard: DASHBOARD_VARIABLES,
})) {
  readme = withSection(readme, `${name} variables`, variablesTable(variables));
}
writeFileSync(README, readme);
writeFileSync(COMMANDS, withSection(readFileSync(COMMANDS, 'utf8'), 'commands', await commandList()));

function withSection(page: string, name: string, content: string): string {
  const section = new RegExp(`(<!-- ${name} -->\n)[^]*?(<!-- end -->)`);
  if (!section.test(page)) throw new Error(`no page has a section for ${name}`);
  return page.replace(section, (_, start: string, end: string) => `${start}\n${content}\n\n${end}`);
}

/** All commands with their options, by group; optional ones are in brackets. */
async function commandList(): Promise<string> {
  const groups = (await createProgram()).commands.filter(({ commands }) => commands.length > 0);
  return groups
    .map((group) => {
      const commands = group.commands.map((command) => {
        const options = command.options.filter(({ long }) => long !== '--json');
        const required = options.filter(({ mandatory }) => mandatory).map(({ flags }) => flags);
        const optional = options.filter(({ mandatory }) => !mandatory).map(({ flags }) => `[${flags}]`);
        const usage = [...required, ...optional].join(' ');
        return `- \`${group.name()} ${command.name()} ${usage}\`: ${command.description()}`;
      });
      return [`### ${group.name()}`, '', ...commands].join('\n');
    })
    .join('\n\n');
}
