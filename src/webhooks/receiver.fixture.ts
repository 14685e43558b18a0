import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterFile } from '../../test/harness/after-file.ts';

/** A request that a receiver has received. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** `webhook-id`. */
  readonly id: string;
}

/** A webhook endpoint over HTTP, which closes after the calling file's tests. */
export interface Receiver {
  /** Its URL without a path. */
  readonly url: string;
  readonly port: number;
  /** All requests, in order. */
  readonly received: Received[];
  /** Number of connections accepted. */
  connections(): number;
  /** Highest number of concurrent requests. */
  maxConcurrent(): number;
}

/** Responds to a request. One that returns without ending the response leaves it open. */
export type Responder = (received: Received, response: ServerResponse) => void | Promise<void>;

/** Responds with 204 at once. */
export const ACCEPT: Responder = (_, response) => void response.writeHead(204).end();

/** Never responds. */
export const HANG: Responder = () => undefined;

/** Responds with 204 after some ms. */
export const acceptAfter =
  (ms: number): Responder =>
  async (_, response) => {
    await sleep(ms);
    response.writeHead(204).end();
  };

export async function startReceiver(respond: Responder = ACCEPT): Promise<Receiver> {
  const received: Received[] = [];
  let connections = 0;
  let concurrent = 0;
  let maxConcurrent = 0;
  const listener: RequestListener = async (request, response) => {
    maxConcurrent = Math.max(maxConcurrent, ++concurrent);
    response.on('close', () => concurrent--);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { headers, url: path = '' } = request;
    const got = { path, headers, body: Buffer.concat(chunks).toString(), id: String(headers['webhook-id']) };
    received.push(got);
    await respond(got, response);
  };
  const server = createServer((request, response) => {
    // A sender that aborts its request is not a failure of the receiver.
    Promise.resolve(listener(request, response)).catch(() => undefined);
  });
  server.on('connection', () => connections++);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  afterFile(async () => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    received,
    connections: () => connections,
    maxConcurrent: () => maxConcurrent,
  };
}
