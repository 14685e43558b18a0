import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { CallOptions } from '@connectrpc/connect';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { fingerprint } from './body.ts';
import { callAuthorization, callMetadata } from './call-metadata.ts';
import { whileWaitedFor } from './caller-left.ts';
import type { Answer, Endpoint } from './endpoint.ts';
import { errorAnswer, isToldByCore } from './errors.ts';
import { IncomingBody } from './incoming-body.ts';
import { rateHeaders } from './rate-headers.ts';
import { type Receiving, receiveBody } from './receive-body.ts';
import { Refusal, refuse } from './refusal.ts';

/** What every endpoint needs. */
export interface Serving extends Receiving {
  readonly logger: Logger;
  /** Logs now and then that requests got no answer of the core. */
  readonly logUnavailable: (requests: number, latest: object) => void;
}

/** Answers a request by the endpoint's one RPC, or with the error that came of it. Gives the status. */
export async function serve(
  serving: Serving,
  endpoint: Endpoint,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<number> {
  const { core, logger, logUnavailable } = serving;
  const metadata = callMetadata(request.id, request.headers, endpoint.idempotent === true);
  const shared = {
    headers: metadata,
    onHeader: (received: Headers) => void reply.headers(rateHeaders(received)),
  };
  // Every answer to a request with a key tells, also one that the core never gave.
  if (metadata.has('idempotency-key')) reply.header('idempotent-replay', 'false');
  const incoming = new IncomingBody(request.raw, reply.raw);
  using held = new DisposableStack();
  try {
    metadata.set('authorization', callAuthorization(request.headers));
    const onRaw = (raw: Buffer) => metadata.set('idempotency-fingerprint', fingerprint(request, raw));
    const { rpc } = endpoint;
    const body =
      endpoint.body &&
      (await receiveBody(serving, { rpc, body: endpoint.body, incoming, reply, options: shared, onRaw, held }));
    const { id = '' } = request.params as { id?: string };
    const query = request.query as Record<string, string | string[]>;
    const options = {
      ...shared,
      ...(endpoint.timeoutMs === undefined ? {} : { timeoutMs: endpoint.timeoutMs }),
      // Changes are never aborted: they may have happened already.
      ...(endpoint.method === 'GET' ? { signal: whileWaitedFor(reply).signal } : {}),
    } satisfies CallOptions;
    return send(reply, await endpoint.handle({ id, query, headers: request.headers, body, options }));
  } catch (error) {
    const shown = error instanceof Refusal ? await refuse(core, endpoint.rpc, error, { headers: metadata }) : error;
    const answer = errorAnswer(shown);
    // What the core calls its own fault it has logged, under the same request id; and a caller who left asks nothing.
    if (answer.status >= 500 && !isToldByCore(shown) && !reply.raw.destroyed) {
      const told = { endpoint: endpoint.id, request_id: request.id, err: shown };
      if (answer.reason === 'UNAVAILABLE') logUnavailable(1, told);
      else logger.error(told, 'request failed');
    }
    // What has arrived together with the head is parsed a turn later, and then the connection can be kept.
    if (incoming.isUnread) await turn();
    return incoming.isUnread ? sendAndClose(incoming, reply, answer) : send(reply, answer);
  }
}

function send(reply: FastifyReply, { status, headers = {}, body }: Answer<unknown>): number {
  reply.code(status).headers(headers);
  if (body === undefined || body instanceof Uint8Array) reply.send(body);
  else reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
  return status;
}

/** Answers although the body is still on its way, and closes the connection once it has arrived. */
function sendAndClose(incoming: IncomingBody, reply: FastifyReply, { status, headers, body }: Answer<unknown>): number {
  const json = Buffer.from(JSON.stringify(body));
  reply
    .code(status)
    .headers({ ...headers, connection: 'close', 'content-length': json.length })
    .type('application/json; charset=utf-8')
    .send(Readable.from(incoming.drainBehind(json)));
  return status;
}
