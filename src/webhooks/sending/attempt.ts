import { Agent, type buildConnector, type Dispatcher, request } from 'undici';
import { signatures } from '../signature.ts';
import { AddressRejected } from './guarded-connect.ts';
import { ResponseTooLong } from './limit-response.ts';

/** Time limit of an attempt, until the response body has arrived. Source: docs/events.md, "Deliveries". */
export const TIMEOUT_MS = 15_000;

/** How much of a response body is stored. */
const STORED_BYTES = 1_024;
/** How much of a response body is read. The connection of a longer one is closed instead of reused. */
const READ_BYTES = 16_384;
/** How long an idle connection is kept, in ms. */
const IDLE_MS = 4_000;
/**
 * How many interim responses (1xx) may precede the response. A receiver could send them for as long as the attempt
 * lasts.
 */
const MAX_INTERIM = 20;

class TooManyInterimResponses extends Error {
  constructor() {
    super('The endpoint sent too many interim responses.');
  }
}

/** A webhook request. */
export interface WebhookRequest {
  readonly url: string;
  /** The request is signed with each of them. */
  readonly secrets: readonly string[];
  /** `evt_…`: the same in every attempt, for deduplication by the receiver. */
  readonly id: string;
  /** The time of the attempt: receivers reject one that is some minutes from theirs. */
  readonly at: Date;
  readonly body: string;
}

/** The outcome of an attempt. */
export interface Outcome {
  readonly at: Date;
  /** HTTP status; null without a response. */
  readonly status: number | null;
  /** Time until the response headers arrived or the attempt failed. */
  readonly latencyMs: number;
  /** The first 1 KiB of the response body, or a sentence that says why there was no response. */
  readonly response: string;
}

/**
 * The connections of a process. Their number is unlimited and they have no timeouts for responses: endpoints on the
 * same host must not wait for one another. Receivers cannot extend the time for which idle ones are kept.
 */
export function connectionsOf(connect: buildConnector.connector): Agent {
  return new Agent({
    connect,
    connections: null,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
  });
}

/**
 * Makes one attempt. Redirects are not followed, and an attempt without a response within `timeoutMs` fails. Returns
 * undefined if `stop` was aborted before the response arrived: the outcome is unknown then. Rejects only if this
 * process could not open a connection or reach a name server, which says nothing about the endpoint.
 */
export async function attempt(
  dispatcher: Dispatcher,
  { url, secrets, id, at, body }: WebhookRequest,
  { stop, timeoutMs = TIMEOUT_MS }: { stop: AbortSignal; timeoutMs?: number },
): Promise<Outcome | undefined> {
  const timestamp = Math.floor(at.getTime() / 1_000);
  const start = performance.now();
  const latencyMs = () => Math.round(performance.now() - start);
  const aborting = new AbortController();
  const abort = () => aborting.abort();
  const timer = setTimeout(abort, timeoutMs);
  stop.addEventListener('abort', abort);
  let interim = 0;
  try {
    const response = await request(url, {
      dispatcher,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Signpost-Webhooks',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signatures({ id, timestamp, body }, secrets),
      },
      body,
      signal: aborting.signal,
      onInfo() {
        if (++interim > MAX_INTERIM) aborting.abort(new TooManyInterimResponses());
      },
    });
    const latency = latencyMs();
    return { at, status: response.statusCode, latencyMs: latency, response: await firstKibibyte(response.body) };
  } catch (error) {
    if (stop.aborted) return undefined;
    if (isOwnFailure(error)) throw error;
    return { at, status: null, latencyMs: latencyMs(), response: reasonFor(error, aborting.signal.aborted) };
  } finally {
    clearTimeout(timer);
    stop.removeEventListener('abort', abort);
  }
}

async function firstKibibyte(body: AsyncIterable<Buffer>): Promise<string> {
  const stored: Buffer[] = [];
  let read = 0;
  try {
    for await (const chunk of body) {
      if (read < STORED_BYTES) stored.push(chunk.subarray(0, STORED_BYTES - read));
      read += chunk.length;
      if (read > READ_BYTES) break;
    }
  } catch (error) {
    if (error instanceof ResponseTooLong) throw error;
    // Otherwise the outcome depends on the status alone; what arrived of the body is stored.
  }
  // Postgres cannot store NUL in text.
  return Buffer.concat(stored).toString('utf8').replaceAll('\0', '\ufffd');
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The connection was refused.',
  ECONNRESET: 'The connection was reset.',
  UND_ERR_SOCKET: 'The connection was closed without a response.',
  UND_ERR_CONNECT_TIMEOUT: 'The connection could not be established in time.',
  ETIMEDOUT: 'The connection could not be established in time.',
  EHOSTUNREACH: 'The address is unreachable.',
  ENETUNREACH: 'The address is unreachable.',
  ENOTFOUND: 'The host name does not resolve to an address.',
  ENODATA: 'The host name does not resolve to an address.',
  ESERVFAIL: 'The name servers of the host name do not respond.',
  ETIMEOUT: 'The name servers of the host name do not respond.',
};

/** Lack of file descriptors or of memory for sockets. Without a descriptor, all name servers seem to refuse a query. */
function isOwnFailure(error: unknown): boolean {
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
  return ['EMFILE', 'ENFILE', 'ENOBUFS'].includes(code) || (code === 'ECONNREFUSED' && syscall.startsWith('query'));
}

/** Says why there was no response, for the endpoint's owner, without details of the sender's network. */
function reasonFor(error: unknown, timedOut: boolean): string {
  if ([AddressRejected, ResponseTooLong, TooManyInterimResponses].some((kind) => error instanceof kind))
    return (error as Error).message;
  if (timedOut) return 'The endpoint did not respond in time.';
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return REASONS[code] ?? `The request failed${/^[A-Z0-9_]+$/.test(code) ? ` (${code})` : ''}.`;
}
