import type { Command } from 'commander';
import { connectCore } from './core.ts';
import { destructive, expectConfirmed, ofAccount } from './options.ts';
import { jsonOption, print, printRecord } from './output.ts';

/** `key …`: manages the API key of an account. */
export function keyCommands(key: Command): void {
  const json = jsonOption(key);

  destructive(ofAccount(key.command('rotate')))
    .description('issue a new key and revoke the old one at once; the new key is shown only once')
    .action(async ({ account, yes }: { account: string; yes: boolean }) => {
      await expectConfirmed({ yes }, 'The current key will stop working at once.');
      const { accounts } = await connectCore(process.env, account);
      const { apiKey } = await accounts.rotateKey({});
      printRecord(json(), { api_key: apiKey });
    });

  destructive(ofAccount(key.command('revoke')))
    .description('revoke the key at once; the account has none until `rotate` issues one')
    .action(async ({ account, yes }: { account: string; yes: boolean }) => {
      await expectConfirmed({ yes }, 'The key will stop working at once.');
      const { accounts } = await connectCore(process.env, account);
      await accounts.revokeKey({});
      print(json(), { account_id: account, revoked: true }, () => 'The key is revoked.');
    });
}
