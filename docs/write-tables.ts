import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { variablesTable } from '../common/runtime/variables.ts';
import { GATEWAY_VARIABLES } from '../gateway/config.ts';
import { CORE_VARIABLES } from '../src/config.ts';

/** Writes the README's tables of variables from the lists that the programs use: a part of `npm run generate`. */
const README = resolve(import.meta.dirname, '../README.md');

let text = readFileSync(README, 'utf8');
for (const [name, variables] of Object.entries({ core: CORE_VARIABLES, gateway: GATEWAY_VARIABLES })) {
  const section = new RegExp(`(<!-- ${name} variables -->\n)[^]*?(<!-- end -->)`);
  if (!section.test(text)) throw new Error(`README.md has no section for the variables of the ${name}`);
  text = text.replace(section, (_, start: string, end: string) => `${start}\n${variablesTable(variables)}\n\n${end}`);
}
writeFileSync(README, text);
