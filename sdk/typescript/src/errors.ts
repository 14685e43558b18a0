import type { ErrorBody } from './types.gen.ts';

/** Every error that this SDK throws, except an abort by the caller's own signal. */
export class SignpostError extends Error {
  override readonly name: string = 'SignpostError';
  /**
   * The key of a creation that failed, also one that the SDK has generated: with it and the same values, the call can
   * be repeated within 24 hours without creating twice. Of `ApiError` and `ConnectionError` only.
   */
  idempotencyKey?: string | undefined;
}

/** No complete response arrived, in any attempt: the connection failed, or each attempt took too long. */
export class ConnectionError extends SignpostError {
  override readonly name = 'ConnectionError';
}

/** What the API answered. */
interface Answered {
  readonly status: number;
  readonly body: ErrorBody;
  readonly headers: Headers;
}

/** An error response. `message` is the API's sentence, which a person can act on. */
export class ApiError extends SignpostError {
  override readonly name: string = 'ApiError';
  /** The HTTP status. */
  readonly status: number;
  /** For programs; only with some 403s. */
  readonly code: ErrorBody['code'];
  /** The field that the sentence is about, if it is about one: `target_url`. */
  readonly field: string | undefined;
  /** Names this response in support requests. */
  readonly requestId: string | undefined;
  /** The headers of the response, for example `X-RateLimit-Reset`. */
  readonly headers: Headers;

  constructor({ status, body, headers }: Answered) {
    super(body.error);
    this.status = status;
    this.code = body.code;
    // A sentence about a field begins with its name.
    this.field = status === 400 ? /^([a-z]\w*[\w.[\]]*): /.exec(body.error)?.[1] : undefined;
    this.requestId = headers.get('x-request-id') ?? undefined;
    this.headers = headers;
  }
}

/** 400: the request is invalid; `field` says where, if it is a field. */
export class BadRequestError extends ApiError {
  override readonly name = 'BadRequestError';
}

/** 401: the API key is missing or invalid. */
export class AuthenticationError extends ApiError {
  override readonly name = 'AuthenticationError';
}

/** 403: the plan does not allow it, or a limit of the account is reached; `code` tells which. */
export class PermissionDeniedError extends ApiError {
  override readonly name = 'PermissionDeniedError';
  /** With `qr_limit_reached`: the codes allowed and in use. */
  readonly limit: number | undefined;
  readonly used: number | undefined;

  constructor(answered: Answered) {
    super(answered);
    this.limit = answered.body.limit;
    this.used = answered.body.used;
  }
}

/** 404: the account has no such resource. */
export class NotFoundError extends ApiError {
  override readonly name = 'NotFoundError';
}

/**
 * 409. With `retryAfter`: a request with this idempotency key is still being carried out; repeat the call with the same
 * key. Without: the key was used for something else, or the code has no target to change or nothing to encode.
 */
export class ConflictError extends ApiError {
  override readonly name = 'ConflictError';
  /** Seconds until a repetition may have the result. */
  readonly retryAfter: number | undefined;

  constructor(answered: Answered) {
    super(answered);
    this.retryAfter = retryAfterSeconds(answered.headers);
  }
}

/** 413: the body or the batch is too large. */
export class TooLargeError extends ApiError {
  override readonly name = 'TooLargeError';
}

/** 429: the monthly quota is used up (no `retryAfter`), or requests came too fast for longer than all retries took. */
export class RateLimitError extends ApiError {
  override readonly name = 'RateLimitError';
  /** Seconds until a request can succeed; undefined if the monthly quota is used up: see `X-RateLimit-Reset`. */
  readonly retryAfter: number | undefined;

  constructor(answered: Answered) {
    super(answered);
    this.retryAfter = retryAfterSeconds(answered.headers);
  }
}

/** 5xx: the service failed or was unavailable in every attempt. */
export class ServerError extends ApiError {
  override readonly name = 'ServerError';
}

const BY_STATUS: Readonly<Record<number, new (answered: Answered) => ApiError>> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  413: TooLargeError,
  429: RateLimitError,
};

/** The error for a response. A proxy's response may have a body that is not the API's. */
export async function errorOf(response: Response): Promise<ApiError> {
  const { status, headers } = response;
  const text = await response.text();
  // Not followed, as that could send the key elsewhere.
  const location = status < 400 ? headers.get('location') : null;
  const redirect = location ? `: a redirect to ${location}` : '';
  let body: ErrorBody = { error: `HTTP ${status}${redirect}` };
  try {
    const json = JSON.parse(text);
    if (typeof json?.error === 'string') body = json;
  } catch {
    // The status says enough.
  }
  const ErrorClass = BY_STATUS[status] ?? (status >= 500 ? ServerError : ApiError);
  return new ErrorClass({ status, body, headers });
}

/** The longest `Retry-After`, in seconds, that is distinguished: 24 days, for which a timer can still wait. */
const LONGEST_RETRY_AFTER = 24 * 86_400;

/** `Retry-After` in seconds. Proxies may send it as a date (RFC 9110 §10.2.3). */
export function retryAfterSeconds(headers: Headers): number | undefined {
  const value = headers.get('retry-after') ?? '';
  if (/^\d+$/.test(value)) return Math.min(Number(value), LONGEST_RETRY_AFTER);
  const date = / GMT$/.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(date)) return undefined;
  return Math.min(Math.max(0, Math.ceil((date - Date.now()) / 1_000)), LONGEST_RETRY_AFTER);
}
