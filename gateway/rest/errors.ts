import { Code, ConnectError } from '@connectrpc/connect';
import { REASONS, type Reason, readFailure } from '../../common/contract/errors.ts';
import { rateHeaders } from './rate-headers.ts';

/** How soon a retry of a 503 makes sense, in seconds. */
const RETRY_AFTER = 2;

/** Codes of a core that is away, hangs or was left. */
const AWAY: readonly Code[] = [Code.Unavailable, Code.DeadlineExceeded, Code.Canceled];

/** The body of every error. Source: docs/contract.md, "Errors"; decision "Bodies and envelopes". */
export interface ErrorBody {
  /** One sentence that a person can act on. */
  error: string;
  /** A 403 may have one. */
  code?: string;
  /** With `qr_limit_reached`: live dynamic codes allowed, and had. */
  limit?: number;
  used?: number;
}

/** An error as its answer. */
export interface ErrorAnswer {
  readonly reason: Reason;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ErrorBody;
}

/** Any error as its answer; what is none of the catalogue is told as INTERNAL and nothing more. */
export function errorAnswer(error: unknown): ErrorAnswer {
  const { reason, message, details } = isUnavailable(error)
    ? { reason: 'UNAVAILABLE' as const, message: 'The service is temporarily unavailable; try again.', details: {} }
    : readFailure(error);
  const appearance = REASONS[reason];
  const status = appearance.http;
  const headers: Record<string, string> = error instanceof ConnectError ? rateHeaders(error.metadata) : {};
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  if (status === 503) headers['retry-after'] = String(RETRY_AFTER);
  if (details.retry_after !== undefined) headers['retry-after'] = details.retry_after;

  const body: ErrorBody = { error: message };
  if (status === 403 && 'code' in appearance) body.code = appearance.code;
  if (reason === 'QR_LIMIT_REACHED') {
    body.limit = Number(details.limit);
    body.used = Number(details.used);
  }
  return { reason, status, headers, body };
}

/** Whether the core gave the error itself: then it names a reason of the catalogue. */
export function isToldByCore(error: unknown): boolean {
  return error instanceof ConnectError && error.details.length > 0;
}

/** Whether the call got no answer. */
function isUnavailable(error: unknown): boolean {
  return error instanceof ConnectError && !isToldByCore(error) && AWAY.includes(error.code);
}
