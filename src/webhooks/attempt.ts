import { type Dispatcher, request } from 'undici';
import { AddressRefused } from './guarded-connect.ts';
import { signatures } from './signature.ts';

/** How long an endpoint may take, answer and all. Source: docs/contract.md, "Events". */
export const TIMEOUT_MS = 15_000;

/** What is kept of an answer. */
const KEPT_BYTES = 1_024;
/** What is read of an answer so that its connection can be used again; a longer one costs the connection. */
const READ_BYTES = 16_384;

/** What to send where. */
export interface Sending {
  readonly url: string;
  /** Each signs. */
  readonly secrets: readonly string[];
  /** `evt_…`: the same in every attempt, so that a receiver knows what it has seen. */
  readonly id: string;
  readonly body: string;
}

/** What came of an attempt. */
export interface Outcome {
  readonly at: Date;
  /** Null when there was no answer. */
  readonly status: number | null;
  /** Until the answer's head, or until it was given up. */
  readonly latencyMs: number;
  /** The first 1 KiB of the answer, or a sentence that says why there was none. */
  readonly response: string;
}

/**
 * Makes one attempt, whatever happens: redirects are not followed, and what takes longer than `timeoutMs` has failed.
 * Undefined when `stop` was aborted before there was an answer: then nothing is known.
 */
export async function attempt(
  dispatcher: Dispatcher,
  { url, secrets, id, body }: Sending,
  { stop, timeoutMs = TIMEOUT_MS }: { stop: AbortSignal; timeoutMs?: number },
): Promise<Outcome | undefined> {
  const at = new Date();
  const timestamp = Math.floor(at.getTime() / 1_000);
  const start = performance.now();
  const latencyMs = () => Math.round(performance.now() - start);
  const ending = new AbortController();
  const abort = () => ending.abort();
  const timer = setTimeout(abort, timeoutMs);
  stop.addEventListener('abort', abort);
  try {
    const answer = await request(url, {
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
      signal: ending.signal,
    });
    const latency = latencyMs();
    return { at, status: answer.statusCode, latencyMs: latency, response: await beginning(answer.body) };
  } catch (error) {
    if (stop.aborted) return undefined;
    return { at, status: null, latencyMs: latencyMs(), response: sentenceOf(error, ending.signal.aborted) };
  } finally {
    clearTimeout(timer);
    stop.removeEventListener('abort', abort);
  }
}

async function beginning(body: AsyncIterable<Buffer>): Promise<string> {
  const kept: Buffer[] = [];
  let read = 0;
  try {
    for await (const chunk of body) {
      if (read < KEPT_BYTES) kept.push(chunk.subarray(0, KEPT_BYTES - read));
      read += chunk.length;
      if (read > READ_BYTES) break;
    }
  } catch {
    // The status is known, and decides; of the rest we have what came in time.
  }
  // Postgres keeps no NUL in text.
  return Buffer.concat(kept).toString('utf8').replaceAll('\0', '\ufffd');
}

const SENTENCES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The connection was refused.',
  ECONNRESET: 'The connection was reset.',
  UND_ERR_SOCKET: 'The connection was closed without an answer.',
  UND_ERR_CONNECT_TIMEOUT: 'No connection came about in time.',
  ETIMEDOUT: 'No connection came about in time.',
  EHOSTUNREACH: 'The address can not be reached.',
  ENETUNREACH: 'The address can not be reached.',
  ENOTFOUND: 'The name leads to no address.',
  ENODATA: 'The name leads to no address.',
  ESERVFAIL: 'The name servers of the name do not answer.',
  ETIMEOUT: 'The name servers of the name do not answer.',
};

/** Why there was no answer, for the endpoint's owner: nothing of our network is in it. */
function sentenceOf(error: unknown, late: boolean): string {
  if (error instanceof AddressRefused) return error.message;
  if (late) return 'No answer came in time.';
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return SENTENCES[code] ?? `The request failed${/^[A-Z0-9_]+$/.test(code) ? ` (${code})` : ''}.`;
}
