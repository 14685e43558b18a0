import { type Agent, type IncomingHttpHeaders, request } from 'node:http';

/** The result of a request. */
export interface RequestResult {
  /** Undefined if no complete response was received. */
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The code of the error if no response was received. */
  readonly error: string | undefined;
  /** ms since 1970. */
  readonly startedAt: number;
  readonly endedAt: number;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Reuses connections; without an agent, each request has its own connection. */
  readonly agent?: Agent | undefined;
}

/** Longer than all documented response times: a request that takes this long will never be answered. */
const TIMEOUT_MS = 60_000;

/** Sends a request once; never rejects. */
export function sendRequest(
  url: string,
  { method = 'GET', headers = {}, body, agent }: RequestOptions = {},
): Promise<RequestResult> {
  const startedAt = Date.now();
  return new Promise((resolve) => {
    const end = (outcome: Pick<RequestResult, 'status' | 'headers' | 'body' | 'error'>) =>
      resolve({ ...outcome, startedAt, endedAt: Date.now() });
    const fail = ({ code, message, name }: NodeJS.ErrnoException) =>
      end({ status: undefined, headers: {}, body: '', error: name === 'TimeoutError' ? 'hung' : (code ?? message) });
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const outgoing = request(url, { method, headers, agent: agent ?? false, signal }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', fail);
      response.once('end', () => {
        const { statusCode: status, headers } = response;
        end({ status, headers, body: Buffer.concat(chunks).toString(), error: undefined });
      });
    });
    outgoing.once('error', fail);
    // For any other end of the request, so that the promise is always settled.
    outgoing.once('close', () => fail(Object.assign(new Error(), { code: 'closed' })));
    outgoing.end(body);
  });
}
