import { Code, ConnectError } from '@connectrpc/connect';
import { REASONS, type Reason, readFailure, TEMPORARILY_UNAVAILABLE } from '../../common/contract/errors.ts';
import type { ErrorBody } from '../http/error-body.ts';
import { metadataHeaders } from './metadata-headers.ts';

/** `Retry-After` of a 503, in seconds. */
const RETRY_AFTER_SECONDS = 2;
/** That of a 409 whose key's first request is still running; by it clients recognize this 409. */
const IN_FLIGHT_RETRY_AFTER_SECONDS = 1;

/** Codes of calls that ended before they were answered, whether the core noticed it or the gateway. */
const UNANSWERED_CODES: readonly Code[] = [Code.DeadlineExceeded, Code.Canceled];

/** An error as an HTTP response. */
export interface ErrorResponse {
  readonly reason: Reason;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ErrorBody;
}

/** Converts any error to a response; one outside the catalogue becomes INTERNAL without details. */
export function errorResponse(error: unknown): ErrorResponse {
  const { reason, message, details } = isUnavailable(error)
    ? { reason: 'UNAVAILABLE' as const, message: TEMPORARILY_UNAVAILABLE, details: {} }
    : readFailure(error);
  const representation = REASONS[reason];
  const status = representation.http;
  const headers: Record<string, string> =
    error instanceof ConnectError ? metadataHeaders((name) => error.metadata.get(name)) : {};
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  if (status === 503) headers['retry-after'] = String(RETRY_AFTER_SECONDS);
  if (reason === 'IDEMPOTENCY_KEY_IN_FLIGHT') headers['retry-after'] = String(IN_FLIGHT_RETRY_AFTER_SECONDS);
  if (details.retry_after !== undefined) headers['retry-after'] = details.retry_after;

  const body: ErrorBody = { error: message };
  if (status === 403 && 'code' in representation) body.code = representation.code;
  if (reason === 'QR_LIMIT_REACHED') {
    body.limit = Number(details.limit);
    body.used = Number(details.used);
  }
  return { reason, status, headers, body };
}

/** Whether the core answered with the error, which then has a reason of the catalogue. */
export function isCoreError(error: unknown): boolean {
  return error instanceof ConnectError && error.details.length > 0 && !UNANSWERED_CODES.includes(error.code);
}

/** Whether the call got no response from the core. */
function isUnavailable(error: unknown): boolean {
  if (!(error instanceof ConnectError) || isCoreError(error)) return false;
  return error.code === Code.Unavailable || UNANSWERED_CODES.includes(error.code);
}
