import type { Command } from 'commander';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { connectCore } from './core.ts';
import { example, ofAccount } from './options.ts';
import { jsonOption, print } from './output.ts';

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

/**
 * The token is in the fragment, which browsers send to nobody: it is in no log of a server or proxy, and programs that
 * preview links do not use it up.
 */
function signInUrl(base: URL, token: string): string {
  return `${base.href.replace(/\/$/, '')}/sign-in/link#${token}`;
}

function dashboardUrl(env: NodeJS.ProcessEnv): URL {
  const url = URL.parse(env.DASHBOARD_URL || 'http://localhost:8090');
  if (url && /^https?:$/.test(url.protocol) && !url.search && !url.hash) return url;
  throw new OperatorError('DASHBOARD_URL must be an http or https address, such as https://signpost.example.');
}
