import type { IncomingHttpHeaders } from 'node:http2';
import { Readable } from 'node:stream';
import { setImmediate as nextIteration } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { METADATA } from '../../common/contract/metadata.ts';
import { methodName } from '../../common/contract/method-name.ts';
import type { CoreClients } from '../core/clients.ts';
import type { CallOptions } from '../core/transport.ts';
import type { Attempt } from './authentication-attempts.ts';
import { fingerprint } from './body/fingerprint.ts';
import { IncomingBody } from './body/incoming-body.ts';
import { type Receiving, receiveBody } from './body/receive-body.ts';
import { MAX_BODY_BYTES } from './body/request-limits.ts';
import { callAuthorization, callMetadata } from './call-metadata.ts';
import { abortOnDisconnect } from './caller-disconnect.ts';
import type { Endpoint, EndpointResponse } from './endpoint.ts';
import { type ErrorResponse, errorResponse, isCoreError } from './errors.ts';
import { metadataHeaders } from './metadata-headers.ts';
import { Refusal, refuse } from './refusal.ts';

/**
 * The status under which metrics and traces have a request whose caller disconnected, as in nginx; no client receives
 * it.
 */
const CALLER_DISCONNECTED = 499;

/** A body that its endpoint ignores. Source: docs/contract.md, "Bodies and envelopes". */
const IGNORED_BODY = { maxBytes: MAX_BODY_BYTES, bytesBeforeAuthentication: 0, read: async () => undefined };

/** What serving any endpoint needs. */
export interface Serving extends Receiving {
  readonly core: CoreClients;
  /** Logs now and then that requests got no response from the core. */
  readonly logUnavailable: (requests: number, latest: object) => void;
  /** Logs a failure of an endpoint, the first for a while as an error. */
  readonly logFailure: (endpoint: string, fields: object) => void;
}

/** Responds to a request with the result of the endpoint's RPC or with an error. Resolves with the status. */
export async function serve(
  serving: Serving,
  endpoint: Endpoint,
  attempt: Attempt,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<number> {
  const { core } = serving;
  const metadata = callMetadata(endpoint, request);
  const shared = {
    headers: metadata,
    onHeaders: (received: IncomingHttpHeaders) => void reply.headers(metadataHeaders((name) => received[name])),
  };
  const incoming = new IncomingBody(request.raw, reply.raw);
  using held = new DisposableStack();
  try {
    metadata.authorization = callAuthorization(request.headers);
    const onRaw = (raw: Buffer) => {
      // Nothing else reads it, and hashing the largest batch takes 2 ms.
      if (metadata[METADATA.idempotencyKey] !== undefined) metadata[METADATA.fingerprint] = fingerprint(request, raw);
    };
    const { rpc } = endpoint;
    const authenticate = async (signal?: AbortSignal) => {
      const options = { ...shared, ...(signal && { signal }) };
      return (await core.admission.authenticate({ method: methodName(rpc) }, options)).accountId;
    };
    const authenticated = await attempt.authenticate(reply, () => authenticate());
    const { body: accepted = IGNORED_BODY } = endpoint;
    incoming.expectAtMost(accepted.maxBytes);
    // Only reading an ignored body shows its size if it has no `Content-Length`.
    const isReceived = accepted !== IGNORED_BODY || incoming.declaredBytes === Infinity;
    const body = isReceived
      ? await receiveBody(serving, {
          body: accepted,
          incoming,
          reply,
          onRaw,
          held,
          authenticate: async (signal) => authenticated ?? authenticate(signal),
        })
      : undefined;
    const { id = '' } = request.params as { id?: string };
    const query = request.query as Record<string, string | string[]>;
    const options = {
      ...shared,
      ...(endpoint.timeoutMs === undefined ? {} : { timeoutMs: endpoint.timeoutMs }),
      // Changes are never aborted: they may have taken effect already.
      ...(endpoint.method === 'GET' ? { signal: abortOnDisconnect(reply).signal } : {}),
    } satisfies CallOptions;
    return send(reply, await endpoint.handle({ id, query, headers: request.headers, body, options }));
  } catch (error) {
    const shown = error instanceof Refusal ? await refuse(core, endpoint.rpc, error, { headers: metadata }) : error;
    const response = errorResponse(shown);
    attempt.answered(response.status);
    // A disconnected caller is no error.
    const isDisconnected = reply.raw.destroyed;
    if (!isDisconnected) logError(serving, endpoint, request, response, shown);
    // A body that arrived with the head is parsed one event loop iteration later; then the connection can be kept.
    if (incoming.isUnread) await nextIteration();
    const status = incoming.isUnread ? sendAndClose(incoming, reply, response) : send(reply, response);
    return isDisconnected ? CALLER_DISCONNECTED : status;
  }
}

/** Logs an internal error, unless it is the core's, which logs it itself under the same request id. */
function logError(
  { logUnavailable, logFailure }: Serving,
  endpoint: Endpoint,
  request: FastifyRequest,
  response: ErrorResponse,
  error: unknown,
): void {
  if (response.status < 500 || isCoreError(error)) return;
  const fields = { endpoint: endpoint.id, request_id: request.id, err: error };
  if (response.reason === 'UNAVAILABLE') logUnavailable(1, fields);
  else logFailure(endpoint.id, fields);
}

function send(reply: FastifyReply, { status, headers = {}, body }: EndpointResponse<unknown>): number {
  reply.code(status).headers(headers);
  if (body === undefined || body instanceof Uint8Array) reply.send(body);
  else reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
  return status;
}

/** Responds while the body is still arriving, and closes the connection once it has arrived. */
function sendAndClose(
  incoming: IncomingBody,
  reply: FastifyReply,
  { status, headers, body }: EndpointResponse<unknown>,
): number {
  // Node sends the headers of HEAD only once the response ends.
  if (reply.request.method === 'HEAD')
    return send(reply, { status, headers: { ...headers, connection: 'close' }, body });
  const json = Buffer.from(JSON.stringify(body));
  reply
    .code(status)
    .headers({ ...headers, connection: 'close', 'content-length': json.length })
    .type('application/json; charset=utf-8')
    .send(Readable.from(incoming.drainBehind(json)));
  return status;
}
