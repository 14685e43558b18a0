import { type ConnectError, type ContextValues, createContextKey } from '@connectrpc/connect';
import { failure } from '../../common/contract/errors.ts';
import { MAX_TIMEOUT_MS } from '../../common/contract/limits.ts';
import type { Gate } from './server-options.ts';

/** The units of `grpc-timeout`, in ms. Source: gRPC over HTTP/2, Requests. */
const UNITS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };

const rejectionKey = createContextKey<ConnectError | undefined>(undefined, { description: 'rejected timeout' });

/**
 * The timeout that a call requests, in ms; undefined without a valid one. A malformed timeout and one over
 * `MAX_TIMEOUT_MS` make `rejectTimeouts` reject the call, and must be kept from the servers' libraries, which disagree:
 * connect-node rejects long timeouts without details, and grpc-js, whose timers have 32 bits, ends such calls at once.
 */
export function timeoutOf(
  header: 'connect-timeout-ms' | 'grpc-timeout',
  text: string | null | undefined,
  values: ContextValues,
): number | undefined {
  if (text === null || text === undefined) return undefined;
  const [, number, unit = 'm'] =
    (header === 'grpc-timeout' ? /^(\d{1,8})([HMSmun])$/ : /^(\d{1,10})$/).exec(text) ?? [];
  const timeoutMs = Number(number) * (UNITS[unit] ?? Number.NaN);
  if (timeoutMs <= MAX_TIMEOUT_MS) return timeoutMs;
  const rule = Number.isNaN(timeoutMs) ? 'is not a timeout' : `must be at most ${MAX_TIMEOUT_MS / 60_000} minutes`;
  values.set(rejectionKey, failure('INVALID_FIELD', `${header}: ${rule}.`));
  return undefined;
}

/** Rejects admitted calls whose timeout `timeoutOf` did not accept. */
export function rejectTimeouts(admit: Gate): Gate {
  return async (context) => {
    await admit(context);
    const rejection = context.values.get(rejectionKey);
    if (rejection) throw rejection;
  };
}
