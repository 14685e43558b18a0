import { type Agent, type IncomingHttpHeaders, request } from 'node:http';

/** What came of a request. */
export interface Asked {
  /** Undefined where no whole answer came. */
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Code of the error where no answer came. */
  readonly error: string | undefined;
  /** ms since 1970. */
  readonly startedAt: number;
  readonly endedAt: number;
}

export interface AskOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Keeps connections; without one each request has a connection of its own. */
  readonly agent?: Agent | undefined;
}

/** Longer than every promise about answers: who waits that long has been forgotten. */
const TIMEOUT_MS = 60_000;

/** Asks once, and never fails. */
export function ask(url: string, { method = 'GET', headers = {}, body, agent }: AskOptions = {}): Promise<Asked> {
  const startedAt = Date.now();
  return new Promise((resolve) => {
    const end = (outcome: Pick<Asked, 'status' | 'headers' | 'body' | 'error'>) =>
      resolve({ ...outcome, startedAt, endedAt: Date.now() });
    const fail = ({ code, message, name }: NodeJS.ErrnoException) =>
      end({ status: undefined, headers: {}, body: '', error: name === 'TimeoutError' ? 'hung' : (code ?? message) });
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const asked = request(url, { method, headers, agent: agent ?? false, signal }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', fail);
      response.once('end', () => {
        const { statusCode: status, headers } = response;
        end({ status, headers, body: Buffer.concat(chunks).toString(), error: undefined });
      });
    });
    asked.once('error', fail);
    // Whatever else ends it: nobody may wait for ever.
    asked.once('close', () => fail(Object.assign(new Error(), { code: 'closed' })));
    asked.end(body);
  });
}
