import { Readable } from 'node:stream';
import { type CallOptions, Code, ConnectError } from '@connectrpc/connect';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { CoreClients } from '../core.ts';
import { answerThenDrain, BodyTooLarge, fingerprint, readBody } from './body.ts';
import { callMetadata } from './call-metadata.ts';
import type { Answer, Endpoint, RequestBody } from './endpoint.ts';
import { errorAnswer, isToldByCore } from './errors.ts';
import { rateHeaders } from './rate-headers.ts';
import { Refusal, refuse } from './refusal.ts';

/** What every endpoint needs. */
export interface Serving {
  readonly core: CoreClients;
  readonly logger: Logger;
}

/** Answers a request by the endpoint's one RPC, or with the error that came of it. Gives the status. */
export async function serve(
  { core, logger }: Serving,
  endpoint: Endpoint,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<number> {
  const metadata = callMetadata(request.id, request.headers, endpoint.idempotent === true);
  const options = {
    headers: metadata,
    onHeader: (received: Headers) => void reply.headers(rateHeaders(received)),
    ...(endpoint.timeoutMs === undefined ? {} : { timeoutMs: endpoint.timeoutMs }),
    ...(endpoint.method === 'GET' ? { signal: whileWaitedFor(reply) } : {}),
  } satisfies CallOptions;
  // Every answer to a request with a key tells, also one that the core never gave.
  if (metadata.has('idempotency-key')) reply.header('idempotent-replay', 'false');
  try {
    const body = endpoint.body && (await takeBody(endpoint.body, request, metadata));
    const { id = '' } = request.params as { id?: string };
    const query = request.query as Record<string, string | string[]>;
    return send(reply, await endpoint.handle({ id, query, headers: request.headers, body, options }));
  } catch (error) {
    const shown = error instanceof Refusal ? await refuse(core, endpoint.rpc, error, { headers: metadata }) : error;
    const answer = errorAnswer(shown);
    // What the core calls its own fault it has logged, under the same request id; and a caller who left asks nothing.
    if (answer.status >= 500 && !isToldByCore(shown) && !reply.raw.destroyed) {
      logger.error({ endpoint: endpoint.id, request_id: request.id, err: shown }, 'request failed');
    }
    return error instanceof BodyTooLarge ? sendAndClose(request, reply, answer) : send(reply, answer);
  }
}

/** The body as the endpoint reads it; what makes the request the same as another goes into the metadata. */
async function takeBody<Body>(
  { maxBytes, read }: RequestBody<Body>,
  request: FastifyRequest,
  metadata: Headers,
): Promise<Body> {
  const raw = await readBody(request.raw, maxBytes);
  const path = request.url.split('?', 1)[0] ?? '';
  metadata.set('idempotency-fingerprint', fingerprint(request.method, path, raw));
  return read(raw);
}

/** Why a call is aborted whose caller left; one for all, because making an error takes its stack down. */
const LEFT = new ConnectError('The caller left.', Code.Canceled);

/** Aborts once nobody waits for the answer any more. Changes are never aborted: they may have happened already. */
function whileWaitedFor(reply: FastifyReply): AbortSignal {
  const left = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) left.abort(LEFT);
  });
  return left.signal;
}

function send(reply: FastifyReply, { status, headers = {}, body }: Answer<unknown>): number {
  reply.code(status).headers(headers);
  if (body === undefined || body instanceof Uint8Array) reply.send(body);
  else reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
  return status;
}

/** Answers although the body is still on its way, and closes the connection once it has arrived. */
function sendAndClose(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, headers, body }: Answer<unknown>,
): number {
  const json = Buffer.from(JSON.stringify(body));
  reply
    .code(status)
    .headers({ ...headers, connection: 'close', 'content-length': json.length })
    .type('application/json; charset=utf-8')
    .send(Readable.from(answerThenDrain(json, request.raw)));
  return status;
}
