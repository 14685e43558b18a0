import type { Command } from 'commander';
import { connectCore } from './core.ts';
import { fields, print } from './output.ts';

/** `key …`: the one API key that an account has. */
export function keyCommands(program: Command): void {
  program
    .command('key')
    .description('the API key of an account')
    .command('rotate')
    .description('issue a new key and revoke the old one at once; the new one is shown here and never again')
    .requiredOption('--account <id>', 'acct_…')
    .action(async (options: { account: string }) => {
      const { accounts } = await connectCore(process.env, options.account);
      const { apiKey } = await accounts.rotateKey({});
      print(program.opts<{ json?: boolean }>().json === true, { api_key: apiKey }, () => fields({ api_key: apiKey }));
    });
}
