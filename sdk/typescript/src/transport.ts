import { ApiError, ConflictError, ConnectionError, errorOf, retryAfterSeconds, SignpostError } from './errors.ts';
import { LONGEST_TIMER_MS, pause } from './pause.ts';

export interface SignpostOptions {
  /** `sk_live_…`. Default: the variable `SIGNPOST_API_KEY`. */
  readonly apiKey?: string | undefined;
  /** The address of the service, without `/api/v1`. Default: the variable `SIGNPOST_BASE_URL`. */
  readonly baseUrl?: string | undefined;
  /**
   * How long one attempt may take, in ms; default: 60,000, because a batch may be answered after 20 s. `Infinity`: any
   * time.
   */
  readonly timeoutMs?: number;
  /**
   * Maximum retries of a request that failed and may succeed; default: 4. Unless it is 0, a creation that is still
   * being carried out is awaited in addition, for up to 30 s.
   */
  readonly maxRetries?: number;
  /**
   * The longest wait before a repetition, in ms; default: 60,000. A longer `Retry-After` is an error at once, except
   * while a creation that is still being carried out is awaited.
   */
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
   * 1 to 255 visible ASCII characters that name this creation: whoever repeats it within 24 hours with the same key,
   * even after a crash, gets the first result. Default: a new one, which all retries of this call share.
   */
  readonly idempotencyKey?: string;
}

export interface ApiRequest extends RequestOptions {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The segments below `/api/v1`, not encoded. */
  readonly path: readonly string[];
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

/**
 * While another request with its idempotency key is being carried out (a 409 with `Retry-After`), a creation is
 * repeated every second or so, for half a minute after the first such answer: a batch may take 20 s.
 */
const IN_FLIGHT_MS = { pause: 1_000, total: 30_000 };

/** The most bytes of a response, decompressed. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

/** Statuses of a failure that may be over at the next attempt. */
const TRANSIENT = [500, 502, 503, 504];

/** What API keys consist of. `fetch` would reject another one as if the connection had failed, and quote it. */
const VISIBLE_ASCII = /^[\x21-\x7e]*$/;

/** What a header can contain (RFC 9110 §5.5): of these, the service decides which idempotency keys are valid. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Prepares requests to one service with one key. */
export function createTransport(options: SignpostOptions): Send {
  const { apiKey = process.env.SIGNPOST_API_KEY, baseUrl = process.env.SIGNPOST_BASE_URL } = options;
  const { timeoutMs = 60_000, maxRetries = 4, maxRetryDelayMs = 60_000, fetch = globalThis.fetch } = options;
  if (!apiKey) throw new SignpostError('An API key is required: pass `apiKey`, or set SIGNPOST_API_KEY.');
  if (!baseUrl) throw new SignpostError('An address is required: pass `baseUrl`, or set SIGNPOST_BASE_URL.');
  if (!VISIBLE_ASCII.test(apiKey)) throw new SignpostError('The API key must consist of visible ASCII characters.');
  if (!isAddress(baseUrl))
    throw new SignpostError('The address must be an http or https URL, without user name and password.');
  if (!(timeoutMs > 0)) throw new SignpostError('`timeoutMs` must be more than 0; `Infinity` allows any time.');
  const base = `${baseUrl.replace(/\/+$/, '')}/api/v1`;

  /** What all attempts of a request send. Fails if the caller's values can't be sent. */
  function prepare({ method, path, query, json, idempotencyKey }: ApiRequest) {
    if (idempotencyKey !== undefined && !SENDABLE.test(idempotencyKey))
      throw new SignpostError('The idempotency key must consist of visible ASCII characters.');
    const headers = {
      authorization: `Bearer ${apiKey}`,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    };
    try {
      const body = json === undefined ? {} : { body: JSON.stringify(json) };
      const url = [base, ...path.map((segment) => encodeURIComponent(segment))].join('/');
      return { url: url + queryString(query), init: { method, headers, ...body } };
    } catch (error) {
      throw new SignpostError(`The values can't be sent: ${method} ${[base, ...path].join('/')}`, { cause: error });
    }
  }

  async function attempt({ url, init }: ReturnType<typeof prepare>, signal: AbortSignal | undefined) {
    const timeout = AbortSignal.timeout(Math.min(Math.ceil(timeoutMs), LONGEST_TIMER_MS));
    try {
      const response = await fetch(url, {
        ...init,
        // Following a redirect could send the key elsewhere.
        redirect: 'manual',
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      });
      // Read here, so that a connection that breaks in the middle of a body is retried too.
      const body = await bytesOf(response);
      const { status, headers } = response;
      return new Response(body.byteLength > 0 ? body : null, { status, headers });
    } catch (error) {
      if (error instanceof SignpostError) throw error;
      signal?.throwIfAborted();
      const what = timeout.aborted ? `No response within ${timeoutMs} ms` : 'The connection failed';
      throw new ConnectionError(`${what}: ${init.method} ${url.split('?', 1)[0]}`, { cause: error });
    }
  }

  /** The wait before a repetition in ms; undefined if there must not be one. */
  function delayAfter(failure: ApiError | ConnectionError, retries: number): number | undefined {
    if (retries >= maxRetries) return undefined;
    const backOff = Math.random() * Math.min(maxRetryDelayMs, FIRST_DELAY_MS * 2 ** retries);
    if (!(failure instanceof ApiError)) return backOff;
    const { status, headers } = failure;
    const retryAfter = retryAfterSeconds(headers);
    // A 429 without Retry-After: the monthly quota is used up.
    if (!TRANSIENT.includes(status) && (status !== 429 || retryAfter === undefined)) return undefined;
    // Spread clients that were all told to wait for the same time.
    const delay = retryAfter === undefined ? backOff : retryAfter * 1_000 + Math.random() * FIRST_DELAY_MS;
    return retryAfter !== undefined && retryAfter * 1_000 > maxRetryDelayMs ? undefined : delay;
  }

  return async (request) => {
    const { method, idempotencyKey, signal } = request;
    const prepared = prepare(request);
    // Whether an attempt ended without a definite answer: it may have been carried out.
    let isUnknown = false;
    // Until when a creation in flight is awaited.
    let inFlightUntil: number | undefined;
    for (let retries = 0; ; ) {
      signal?.throwIfAborted();
      let failure: ApiError | ConnectionError;
      try {
        const response = await attempt(prepared, signal);
        if (response.ok || (isUnknown && method === 'DELETE' && response.status === 404)) return response;
        failure = await errorOf(response);
      } catch (error) {
        if (!(error instanceof ConnectionError)) throw error;
        failure = error;
      }
      isUnknown ||= !(failure instanceof ApiError) || failure.status >= 500;
      failure.idempotencyKey = idempotencyKey;
      let delay: number | undefined;
      const seconds = failure instanceof ConflictError ? failure.retryAfter : undefined;
      if (seconds !== undefined && idempotencyKey !== undefined && maxRetries > 0) {
        inFlightUntil ??= performance.now() + IN_FLIGHT_MS.total;
        delay = Math.max(IN_FLIGHT_MS.pause, seconds * 1_000) + Math.random() * FIRST_DELAY_MS;
        if (performance.now() + delay > inFlightUntil) throw failure;
      } else {
        delay = delayAfter(failure, retries++);
        if (delay === undefined) throw failure;
      }
      await pause(delay, signal);
    }
  };
}

/** The body of a response. Fails when it is too large for one of the API, so that it can't exhaust memory. */
async function bytesOf({ body }: Response): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.byteLength;
    if (length > MAX_RESPONSE_BYTES) throw new SignpostError('The response has more than 64 MiB.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

/**
 * The JSON of a successful response, which has `members`, objects or arrays. At a wrong address something else may have
 * answered.
 */
export async function jsonOf<Body>(response: Response, members: readonly string[] = ['data']): Promise<Body> {
  let body: Record<string, unknown> | null;
  try {
    body = (await response.json()) as typeof body;
  } catch (error) {
    throw notOfTheApi(response, 'is not JSON', error);
  }
  for (const member of members) {
    const value = body?.[member];
    if (typeof value !== 'object' || value === null) throw notOfTheApi(response, `has no \`${member}\``);
  }
  return body as Body;
}

/** The image of a successful response. */
export async function imageOf(response: Response): Promise<Uint8Array<ArrayBuffer>> {
  if (!response.headers.get('content-type')?.startsWith('image/')) throw notOfTheApi(response, 'is not an image');
  return new Uint8Array(await response.arrayBuffer());
}

function notOfTheApi({ status }: Response, problem: string, cause?: unknown): SignpostError {
  return new SignpostError(`The response ${problem} (HTTP ${status}): is the address that of the API?`, { cause });
}

/** Whether a text is an http or https URL without credentials: `fetch` rejects them, in an error that quotes them. */
function isAddress(text: string): boolean {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '';
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
