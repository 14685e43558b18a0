import type { MessageInitShape } from '@bufbuild/protobuf';
import { requiredField } from '../common/contract/required-field.ts';
import type { CreateAccountRequestSchema } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { accountsOf, type LocalCore } from './core.ts';

/** A new account and its key, which can't be retrieved again. */
export interface NewAccount {
  readonly accountId: string;
  readonly apiKey: string;
}

/** Creates an account through the core. Rejects with the core's `ConnectError`. */
export async function createAccount(
  core: LocalCore,
  account: MessageInitShape<typeof CreateAccountRequestSchema>,
): Promise<NewAccount> {
  const created = await accountsOf(core).createAccount(account);
  return { accountId: requiredField(created.account, 'account').id, apiKey: created.apiKey };
}
