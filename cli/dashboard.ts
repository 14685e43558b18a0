import type { Command } from 'commander';
import { connectCore } from './core.ts';
import { example, ofAccount } from './options.ts';
import { jsonOption, print } from './output.ts';
import { dashboardUrl, signInUrl } from './sign-in-url.ts';

/** `dashboard …`: lets members into the dashboard. */
export function dashboardCommands(dashboard: Command): void {
  const json = jsonOption(dashboard);

  example(ofAccount(dashboard.command('link')), 'dashboard link --account acct_… --email anna@example.com')
    .description('print a link with which a member signs in once, within 15 minutes; it replaces the previous one')
    .requiredOption('--email <address>', 'the e-mail address of a member')
    .action(async ({ account, email }: { account: string; email: string }) => {
      const base = dashboardUrl(process.env);
      const { accounts } = await connectCore(process.env, account);
      const { token } = await accounts.createSignInLink({ email });
      const url = signInUrl(base, token);
      print(json(), { url }, () => url);
    });
}
