import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, ConnectionError, errorOf, retryAfterSeconds, SignpostError } from './errors.ts';

export interface SignpostOptions {
  /** `sk_live_…`. Default: the variable `SIGNPOST_API_KEY`. */
  readonly apiKey?: string | undefined;
  /** The address of the service, without `/api/v1`. Default: the variable `SIGNPOST_BASE_URL`. */
  readonly baseUrl?: string | undefined;
  /** How long one attempt may take, in ms; default: 60,000, because a batch may be answered after 20 s. */
  readonly timeoutMs?: number;
  /** How often a request is repeated that failed and may succeed; default: 4. */
  readonly maxRetries?: number;
  /** The longest wait before a repetition, in ms; default: 60,000. A longer `Retry-After` is an error at once. */
  readonly maxRetryDelayMs?: number;
  /** Replaces the global `fetch`, for example to go through a proxy. */
  readonly fetch?: typeof globalThis.fetch;
}

/** Options of every operation. */
export interface RequestOptions {
  /** Aborts the operation, also while it waits for a repetition. */
  readonly signal?: AbortSignal;
}

/** Options of the operations that create. */
export interface CreateOptions extends RequestOptions {
  /**
   * 1 to 255 visible ASCII characters that name this creation: whoever repeats it within 24 hours with the same key, even
   * after a crash, gets the first result. Default: a new one, which all retries of this call share.
   */
  readonly idempotencyKey?: string;
}

export interface ApiRequest extends RequestOptions {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below `/api/v1`. */
  readonly path: string;
  /** Undefined values are left out; an array is sent as several parameters. */
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly json?: unknown;
  readonly idempotencyKey?: string | undefined;
}

/**
 * Sends a request, with retries; the response is a success, or the 404 of a DELETE that an earlier attempt may have
 * carried out.
 */
export type Send = (request: ApiRequest) => Promise<Response>;

/** The wait before the first repetition, in ms; it doubles with every further one. */
const FIRST_DELAY_MS = 500;

/** Statuses of a failure that may be over at the next attempt. */
const TRANSIENT = [500, 502, 503, 504];

/** Prepares requests to one service with one key. */
export function createTransport(options: SignpostOptions): Send {
  const { apiKey = process.env.SIGNPOST_API_KEY, baseUrl = process.env.SIGNPOST_BASE_URL } = options;
  const { timeoutMs = 60_000, maxRetries = 4, maxRetryDelayMs = 60_000, fetch = globalThis.fetch } = options;
  if (!apiKey) throw new SignpostError('An API key is required: pass `apiKey`, or set SIGNPOST_API_KEY.');
  if (!baseUrl) throw new SignpostError('An address is required: pass `baseUrl`, or set SIGNPOST_BASE_URL.');
  const base = `${baseUrl.replace(/\/+$/, '')}/api/v1`;

  async function attempt({ method, path, query, json, idempotencyKey, signal }: ApiRequest): Promise<Response> {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      const response = await fetch(`${base}${path}${queryString(query)}`, {
        method,
        headers: {
          authorization: `Bearer ${apiKey}`,
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
        // Following a redirect could send the key elsewhere.
        redirect: 'manual',
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      });
      // Read here, so that a connection that breaks in the middle of a body is retried too.
      const body = await response.arrayBuffer();
      const { status, headers } = response;
      return new Response(body.byteLength > 0 ? body : null, { status, headers });
    } catch (error) {
      signal?.throwIfAborted();
      const what = timeout.aborted ? `No response within ${timeoutMs} ms` : 'The connection failed';
      throw new ConnectionError(`${what}: ${method} ${base}${path}`, { cause: error });
    }
  }

  /** The wait before a repetition in ms; undefined if there must not be one. */
  function delayAfter(failure: ApiError | ConnectionError, request: ApiRequest, retries: number): number | undefined {
    const backOff = Math.random() * Math.min(maxRetryDelayMs, FIRST_DELAY_MS * 2 ** retries);
    if (!(failure instanceof ApiError)) return backOff;
    const { status, headers } = failure;
    const retryAfter = retryAfterSeconds(headers);
    // The attempt before this one, which failed without a response, may still be running.
    const inFlight = status === 409 && request.idempotencyKey !== undefined && retries > 0;
    // A 429 without Retry-After: the monthly quota is used up.
    if (!inFlight && !TRANSIENT.includes(status) && (status !== 429 || retryAfter === undefined)) return undefined;
    // Spread clients that were all told to wait for the same time.
    const delay = retryAfter === undefined ? backOff : retryAfter * 1_000 + Math.random() * FIRST_DELAY_MS;
    return retryAfter !== undefined && retryAfter * 1_000 > maxRetryDelayMs ? undefined : delay;
  }

  return async (request) => {
    let mayBeDone = false;
    for (let retries = 0; ; retries++) {
      request.signal?.throwIfAborted();
      let failure: ApiError | ConnectionError;
      try {
        const response = await attempt(request);
        if (response.ok || (mayBeDone && response.status === 404)) return response;
        failure = await errorOf(response);
      } catch (error) {
        if (!(error instanceof ConnectionError)) throw error;
        failure = error;
      }
      mayBeDone ||= request.method === 'DELETE' && (!(failure instanceof ApiError) || failure.status >= 500);
      const delay = retries < maxRetries ? delayAfter(failure, request, retries) : undefined;
      if (delay === undefined) throw failure;
      await sleep(delay, undefined, request.signal ? { signal: request.signal } : {});
    }
  };
}

function queryString(query: ApiRequest['query'] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined) parameters.append(name, String(each));
    }
  }
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}
