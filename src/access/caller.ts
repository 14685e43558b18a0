import { createContextKey, type HandlerContext } from '@connectrpc/connect';
import { failure } from '../../common/contract/errors.ts';
import type { RoleName } from '../../common/contract/names.ts';

/** The account of a call with the features and limits of its plan, or of its overrides. */
export interface Account {
  /** UUID. */
  readonly id: string;
  readonly features: { readonly api: boolean; readonly bulk: boolean; readonly images: boolean };
  /** Dynamic codes that are not deleted; null means unlimited. */
  readonly codeLimit: number | null;
  /** Rows per batch. */
  readonly batchLimit: number;
}

/** The month's usage, for response metadata. */
export interface Rate {
  /** Requests per month; null means unlimited. */
  readonly limit: number | null;
  /** Updated when the call is charged further requests. */
  used: number;
  /** Unix second at which the next UTC month begins. */
  readonly reset: number;
  /** Postgres's clock when the call was admitted, in ms since 1970. */
  readonly clock: string;
}

/** A member of the account's team. */
export interface Member {
  readonly email: string;
  readonly role: RoleName;
}

/** The caller: unauthenticated, an account by its API key, or an internal service, possibly on behalf of an account. */
export type Caller =
  | { readonly kind: 'anyone' }
  | {
      readonly kind: 'key';
      readonly account: Account;
      readonly rate: Rate;
      /** When the call was received, of `performance.now()`. */
      readonly receivedAt: number;
    }
  | {
      readonly kind: 'service';
      readonly account?: Account;
      /** The member that the service acts for, if it named one. */
      readonly member?: Member;
      readonly actor: string;
    };

/**
 * Set on admission, before the message is read. A context value, because async-local storage does not reach streaming
 * handlers.
 */
export const callerKey = createContextKey<Caller>({ kind: 'anyone' }, { description: 'caller' });

/** The key by which queues are fair: the UUID of the account that a caller acts for, or else `other`. */
export function fairnessKey(caller: Caller, other: string = caller.kind): string {
  return (caller.kind === 'anyone' ? undefined : caller.account?.id) ?? other;
}

/** The account that a call acts for; fails with UNAUTHENTICATED without one. */
export function accountOf(context: HandlerContext): Account {
  const caller = context.values.get(callerKey);
  if (caller.kind === 'anyone' || !caller.account) throw failure('UNAUTHENTICATED', 'This method requires an account.');
  return caller.account;
}

/** Who is at the other end of a call's connection; set by the servers. */
export interface Peer {
  /** IP address; empty if the connection is closed already. */
  readonly address: string;
  /** Common name in the client certificate of an internal service; undefined without one. */
  readonly certificateName: string | undefined;
}

export const peerKey = createContextKey<Peer>(
  { address: '', certificateName: undefined },
  { description: 'the peer of the connection' },
);
