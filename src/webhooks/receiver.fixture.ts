import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterFile } from '../../test/harness/after-file.ts';

/** A request that a receiver got. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** `webhook-id`. */
  readonly id: string;
}

/** A webhook endpoint over HTTP, which stops after the calling file's tests. */
export interface Receiver {
  /** Its address, without a path. */
  readonly url: string;
  readonly port: number;
  /** All that it got, in order. */
  readonly received: Received[];
  /** Connections that were made to it. */
  connections(): number;
  /** The most requests that it had unanswered at a time. */
  mostAtOnce(): number;
}

/** What a receiver does with a request; one that returns without ending the response hangs. */
export type Answering = (received: Received, response: ServerResponse) => void | Promise<void>;

/** Answers 204 at once. */
export const ACCEPT: Answering = (_, response) => void response.writeHead(204).end();

/** Never answers. */
export const HANG: Answering = () => undefined;

/** Answers 204 after some ms. */
export const slowly =
  (ms: number): Answering =>
  async (_, response) => {
    await sleep(ms);
    response.writeHead(204).end();
  };

export async function startReceiver(answer: Answering = ACCEPT): Promise<Receiver> {
  const received: Received[] = [];
  let connections = 0;
  let atOnce = 0;
  let most = 0;
  const listener: RequestListener = async (request, response) => {
    most = Math.max(most, ++atOnce);
    response.on('close', () => atOnce--);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { headers, url: path = '' } = request;
    const got = { path, headers, body: Buffer.concat(chunks).toString(), id: String(headers['webhook-id']) };
    received.push(got);
    await answer(got, response);
  };
  const server = createServer((request, response) => {
    // A sender that breaks off is none of a receiver's failures.
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
    mostAtOnce: () => most,
  };
}
