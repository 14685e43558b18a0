import { createContextKey, type HandlerContext } from '@connectrpc/connect';
import { failure } from '../../common/contract/errors.ts';

/** An account as a call sees it: who it is and what its plan, or its contract, gives it. */
export interface Account {
  /** UUID. */
  readonly id: string;
  readonly features: { readonly api: boolean; readonly bulk: boolean; readonly images: boolean };
  /** Live dynamic codes; null means unlimited. */
  readonly codeLimit: number | null;
  /** Rows a batch. */
  readonly batchLimit: number;
}

/** The month's figures, for response metadata. */
export interface Rate {
  /** Requests a month; null means unlimited. */
  readonly limit: number | null;
  /** Moves with what the call is charged on its way. */
  used: number;
  /** Unix second at which the next UTC month begins. */
  readonly reset: number;
  /** When the call was judged, in ms since 1970 by Postgres's clock. */
  readonly judgedAt: string;
}

/** Who is calling: nobody in particular, an account by its key, or an internal service, maybe for an account. */
export type Caller =
  | { readonly kind: 'anyone' }
  | { readonly kind: 'key'; readonly account: Account; readonly rate: Rate }
  | { readonly kind: 'service'; readonly account?: Account; readonly actor: string };

/** Set when the call is judged, before its message is read. Travels here because async-local storage does not reach streaming handlers. */
export const callerKey = createContextKey<Caller>({ kind: 'anyone' }, { description: 'caller' });

/** Who takes turns with others: the UUID of the account that a caller acts for, or else what kind of caller it is. */
export function nameOf(caller: Caller): string {
  return (caller.kind === 'anyone' ? undefined : caller.account?.id) ?? caller.kind;
}

/** The account that a call acts for. */
export function accountOf(context: HandlerContext): Account {
  const caller = context.values.get(callerKey);
  if (caller.kind === 'anyone' || !caller.account) throw failure('UNAUTHENTICATED', 'This method acts for an account.');
  return caller.account;
}

/** The name in the certificate that an internal service has shown, set by the servers; undefined without one. */
export const peerKey = createContextKey<string | undefined>(undefined, { description: 'peer' });
