import type { DescService } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { createConnectQueryKey } from '@connectrpc/connect-query';
import { QueryClient } from '@tanstack/react-query';
import { AccountsService } from '../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { reasonOf } from './error-reason.ts';
import { sessionQuery } from './session.ts';

/** Maximum retries of a query while Signpost is unavailable; afterwards the page offers to try again. */
const RETRIES = 4;

/** Interval of further retries while Signpost stays unavailable, in ms. */
const RECOVERY_MS = 15_000;

/** Maximum delay between two attempts, in ms. */
const MAX_RETRY_DELAY_MS = 8_000;

/** How long what has been loaded is taken for current, in ms. */
export const STALE_MS = 10_000;

/** Keeps what has been loaded. */
export const queryClient = new QueryClient({
  defaultOptions: {
    // Calls are made and fail also while the browser says that it is offline. Otherwise pages would only say that they
    // load, and a change would be made at the next connection, although its dialog may have been cancelled long before.
    mutations: { networkMode: 'always' },
    queries: {
      networkMode: 'always',
      refetchOnReconnect: true,
      staleTime: STALE_MS,
      retry: (failures, error) => failures < RETRIES && isTemporary(error),
      refetchInterval: recoveryInterval,
      retryDelay: (failures) => Math.min(MAX_RETRY_DELAY_MS, 500 * 2 ** failures),
    },
  },
});

/** Whether a call failed because a part of Signpost could not be reached, so that it may succeed soon. */
export function isTemporary(error: unknown): boolean {
  // The transport wraps the TypeError that `fetch` throws when there is no answer. A bare one is a mistake in the
  // pages.
  return error instanceof ConnectError && (error.code === Code.Unavailable || error.cause instanceof TypeError);
}

/** After these codes nothing changes by making the same call again. */
const PERMANENT: readonly Code[] = [Code.NotFound, Code.PermissionDenied, Code.Unauthenticated, Code.InvalidArgument];

/** Whether the same call would fail again. */
export function isPermanent(error: unknown): boolean {
  return PERMANENT.includes(ConnectError.from(error).code);
}

/** The `refetchInterval` of a query that is only read again if it failed because Signpost was unavailable. */
export function recoveryInterval({ state }: { readonly state: { readonly status: string; readonly error: unknown } }) {
  return state.status === 'error' && isTemporary(state.error) ? RECOVERY_MS : false;
}

/** Reads again what is shown of these services, and of the account: its audit log and its usage change with them. */
export async function refreshServices(...services: readonly DescService[]): Promise<void> {
  await Promise.all(
    [...services, AccountsService].map((schema) =>
      queryClient.invalidateQueries({ queryKey: createConnectQueryKey({ schema, cardinality: undefined }) }),
    ),
  );
}

/** Reasons why a call fails with which the session that the page shows may be another one by now. */
const REASONS_OF_SESSIONS: readonly string[] = ['NOT_A_MEMBER', 'NOT_FOUND', 'ROLE_REQUIRED'];

/**
 * Shows the sign-in page if a call failed because the session has ended, that or another account if this one was closed
 * or the person has been removed from it, and what their role allows if that has changed. The transport does it for all
 * calls but streams, which fail while they are read.
 */
export function checkSession(error: unknown): void {
  const reason = reasonOf(error) ?? '';
  // Calls for a closed account fail like those for a code that does not exist: only the session tells them apart.
  if (ConnectError.from(error).code === Code.Unauthenticated || REASONS_OF_SESSIONS.includes(reason)) {
    void queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
  }
}
