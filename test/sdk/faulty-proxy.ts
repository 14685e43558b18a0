import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { LOOPBACK } from '../../local/free-port.ts';

/** What a client meets once for each different request; the repetition is passed on. */
const FAULTS: Readonly<Record<string, Fault>> = {
  'POST /qr-codes': 'lost answer',
  'POST /batches': 'lost answer',
  'PATCH /qr-codes/{id}': 'lost answer',
  'DELETE /qr-codes/{id}': 'lost answer',
  'GET /qr-codes/{id}': 'cut answer',
  'GET /qr-codes': 'unavailable',
  'GET /folders': 'bad gateway',
  'GET /tags': 'too fast',
};

/**
 * `lost answer`: the service processes the request, but its connection closes without an answer. `cut answer`: it
 * closes in the middle of the body. `unavailable`: a 503 with `Retry-After`. `bad gateway`: a 502 without, and not in
 * JSON. `too fast`: a 429 with `Retry-After`.
 */
type Fault = 'lost answer' | 'cut answer' | 'unavailable' | 'bad gateway' | 'too fast';

/** `Retry-After` of the faults that have one, in seconds. */
export const RETRY_AFTER_S = 1;

export interface Attempt {
  /** `GET /qr-codes/{id}`. */
  readonly operation: string;
  readonly idempotencyKey: string | undefined;
  /** The same for equal requests. */
  readonly digest: string;
  readonly fault: Fault | undefined;
  /** When it arrived, in ms. */
  readonly at: number;
}

/** A proxy in front of a Signpost that fails the first attempt of most requests. */
export interface FaultyProxy {
  readonly url: string;
  /** Every request so far. */
  readonly attempts: readonly Attempt[];
  close(): void;
}

export async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  const attempts: Attempt[] = [];
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request;
    const body = await buffer(request);
    const digest = createHash('sha256').update(`${method} ${url}\n`).update(body).digest('base64url');
    const operation = `${method} ${url
      .replace('/api/v1', '')
      .replace(/\?.*/, '')
      .replace(/^(\/[^/]+\/)[^/]+/, '$1{id}')}`;
    const isFirst = !attempts.some((each) => each.digest === digest);
    const fault = isFirst ? FAULTS[operation] : undefined;
    const idempotencyKey = headers['idempotency-key'] as string | undefined;
    attempts.push({ operation, idempotencyKey, digest, fault, at: performance.now() });
    const retryAfter = { 'retry-after': String(RETRY_AFTER_S) };
    if (fault === 'unavailable') return void response.writeHead(503, retryAfter).end('{"error":"Try again."}');
    if (fault === 'too fast') return void response.writeHead(429, retryAfter).end('{"error":"Too fast."}');
    if (fault === 'bad gateway') return void response.writeHead(502).end('<h1>Bad Gateway</h1>');
    const answer = await forward(target + url, method, headers, body);
    const content = Buffer.from(await answer.arrayBuffer());
    if (fault === 'lost answer') return void request.socket.destroy();
    if (fault === 'cut answer') {
      response.writeHead(answer.status, { 'content-length': content.length });
      response.write(content.subarray(0, 10), () => request.socket.destroy());
      return;
    }
    const { 'content-encoding': _, 'transfer-encoding': __, ...rest } = Object.fromEntries(answer.headers);
    response.writeHead(answer.status, rest).end(content);
  });
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  return {
    url: `http://${LOOPBACK}:${(server.address() as AddressInfo).port}`,
    attempts,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function forward(
  url: string,
  method: string,
  given: IncomingHttpHeaders,
  body: Buffer<ArrayBuffer>,
): Promise<Response> {
  const { host: _, connection: __, 'content-length': ___, ...rest } = given;
  const headers = Object.entries(rest).map(([name, value]): [string, string] => [name, String(value)]);
  return fetch(url, { method, headers, ...(body.length > 0 ? { body } : {}) });
}
