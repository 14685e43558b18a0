import type { Command } from 'commander';
import { connectCore } from './core.ts';
import { ofAccount } from './options.ts';
import { jsonWanted, print, printRecord } from './output.ts';

/** `key …`: the one API key that an account has. */
export function keyCommands(program: Command): void {
  const json = jsonWanted(program);
  const key = program.command('key').description('the API key of an account');

  ofAccount(key.command('rotate'))
    .description('issue a new key and revoke the old one at once; the new one is shown here and never again')
    .action(async ({ account }: { account: string }) => {
      const { accounts } = await connectCore(process.env, account);
      const { apiKey } = await accounts.rotateKey({});
      printRecord(json(), { api_key: apiKey });
    });

  ofAccount(key.command('revoke'))
    .description('revoke the key at once; the account has none until one is issued by rotate')
    .action(async ({ account }: { account: string }) => {
      const { accounts } = await connectCore(process.env, account);
      await accounts.revokeKey({});
      print(json(), { account_id: account, revoked: true }, () => 'The key is revoked.');
    });
}
