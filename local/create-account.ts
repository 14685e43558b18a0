import type { MessageInitShape } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { AccountsService, type CreateAccountRequestSchema } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { LOOPBACK } from './free-port.ts';

/** The port of a core on this machine, and a token for internal callers. */
export interface Core {
  readonly corePort: number;
  readonly serviceToken: string;
}

/** A new account and its key, which can't be retrieved again. */
export interface NewAccount {
  readonly accountId: string;
  readonly apiKey: string;
}

/** Creates an account through the core. Rejects with the core's `ConnectError`. */
export async function createAccount(
  { corePort, serviceToken }: Core,
  account: MessageInitShape<typeof CreateAccountRequestSchema>,
): Promise<NewAccount> {
  const transport = createConnectTransport({ baseUrl: `http://${LOOPBACK}:${corePort}`, httpVersion: '1.1' });
  const headers = { authorization: `Bearer ${serviceToken}` };
  const created = await createClient(AccountsService, transport).createAccount(account, { headers });
  return { accountId: created.account?.id ?? '', apiKey: created.apiKey };
}
