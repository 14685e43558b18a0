import { type Client, createClient, type Transport } from '@connectrpc/connect';
import { coreTransport } from '../cli/core-transport.ts';
import { METADATA } from '../common/contract/metadata.ts';
import { AccountsService } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { LOOPBACK } from './free-port.ts';

/** The port of a core on this machine, and a token for internal callers. */
export interface LocalCore {
  readonly corePort: number;
  readonly serviceToken: string;
  /** Ends calls that are in progress. */
  readonly signal?: AbortSignal;
}

/** Calls a core on this machine, with these headers. */
export function localTransport(
  { corePort, signal }: Pick<LocalCore, 'corePort' | 'signal'>,
  headers: Readonly<Record<string, string>>,
): Transport {
  return coreTransport({ baseUrl: `http://${LOOPBACK}:${corePort}`, headers, signal });
}

/** The core's service of accounts. `account`: the account to act for, `acct_…`. */
export function accountsOf(core: LocalCore, account?: string): Client<typeof AccountsService> {
  const headers = {
    authorization: `Bearer ${core.serviceToken}`,
    [METADATA.actor]: 'npm start',
    ...(account !== undefined && { [METADATA.account]: account }),
  };
  return createClient(AccountsService, localTransport(core, headers));
}
