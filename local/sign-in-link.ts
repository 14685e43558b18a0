import { Code, ConnectError } from '@connectrpc/connect';
import { signInUrl } from '../cli/sign-in-url.ts';
import { Role } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { accountsOf, type LocalCore } from './core.ts';

/** The e-mail address of the member that links of a local run sign in. Nothing is ever sent to it. */
export const OWNER = 'owner@localhost';

/**
 * Creates an address that signs its first visitor in to the dashboard as the account's owner, within 15 minutes. The
 * owner becomes a member with the first link. `account`: `acct_…`; `dashboard`: where the dashboard is.
 */
export async function createSignInLink(core: LocalCore, account: string, dashboard: URL): Promise<string> {
  const accounts = accountsOf(core, account);
  try {
    return signInUrl(dashboard, (await accounts.createSignInLink({ email: OWNER })).token);
  } catch (error) {
    if (ConnectError.from(error).code !== Code.NotFound) throw error;
  }
  await accounts.addMember({ email: OWNER, role: Role.OWNER });
  return signInUrl(dashboard, (await accounts.createSignInLink({ email: OWNER })).token);
}
