import { Readable } from 'node:stream';
import type { DescMethod } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { encodeEnvelope, transformSplitEnvelope } from '@connectrpc/connect/protocol';
import { codeFromString, contentTypeRegExp, endStreamFlag } from '@connectrpc/connect/protocol-connect';
import { propagation } from '@opentelemetry/api';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import { failure } from '../../common/contract/errors.ts';
import { MAX_ROWS_BYTES, messageTooLarge } from '../../common/contract/limits.ts';
import { METADATA } from '../../common/contract/metadata.ts';
import { methodName } from '../../common/contract/method-name.ts';
import { type ObservedCall, observeCalls } from '../../common/telemetry/observe-calls.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { MAX_BODY_BYTES, receiveBodies } from './call-bodies.ts';
import { endOfStream, isStreaming, sendError } from './connect-answer.ts';
import type { Core } from './core.ts';
import { discardBody } from './discard-body.ts';
import { limitCalls } from './limit-calls.ts';
import { MEMBER_METHODS } from './member-methods.ts';
import type { Session, Sessions } from './session.ts';
import { whileOpen } from './while-open.ts';

/** The maximum size of one message of a stream, in bytes. */
const MAX_MESSAGE_BYTES = MAX_ROWS_BYTES;

/** How long a stream may last, in ms, as long as the core allows. Clients continue with another call. */
const STREAM_MS = 10 * 60_000;

/** How much later than the core this server abandons a call, in ms: normally the core reports the timeout. */
const MARGIN_MS = 2_000;

/**
 * `acct_…` and `mbr_…`: the account and the member that a page shows. The cookie names those of the session, which
 * another tab may have changed since; such a page's calls are rejected, and their answers marked, also those of
 * streams.
 */
const SHOWN_ACCOUNT = 'signpost-shown-account';
const SHOWN_MEMBER = 'signpost-shown-member';
const ACCOUNT_CHANGED = 'signpost-account-changed';

/** What is forwarded of a request. Nothing else that a browser sends reaches the core, cookies least of all. */
const REQUEST_HEADERS = [
  'content-type',
  'content-encoding',
  'content-length',
  'accept-encoding',
  'connect-protocol-version',
  'connect-content-encoding',
  'connect-accept-encoding',
  METADATA.idempotencyKey,
];

/** What is forwarded of a response. */
const RESPONSE_HEADERS = /^(content-type|content-encoding|connect-.+|trailer-.+)$/;

/**
 * Forwards Connect calls of browsers to the core: `POST /rpc/package.Service/Method`, unary and server streaming, JSON
 * and binary. Messages pass through as they are, once they are complete. The core decides what the member's role
 * allows.
 */
export function forwardCalls(
  app: FastifyInstance,
  options: { core: Core; sessions: Sessions; timeoutMs: number; logger: Logger },
): void {
  const { core, sessions, timeoutMs, logger } = options;
  const begin = limitCalls();
  const calls = observeCalls('signpost.dashboard', 'connectrpc');
  const receive = receiveBodies();
  const stopping = new AbortController();
  // Streams would otherwise hold up the stop; clients continue them elsewhere.
  app.addHook('preClose', async () => stopping.abort());
  // Messages are forwarded without being read.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));

  app.post<{ Params: { service: string; method: string } }>('/rpc/:service/:method', {
    // Before anything of the message is read.
    onRequest: async (request, reply) => {
      reply.header('cache-control', 'no-store');
      const { service, method: name } = request.params;
      const method = MEMBER_METHODS.get(`${service}/${name}`);
      const admitted = await admit(request, reply, method);
      if (admitted instanceof ConnectError) {
        discardBody(request, reply);
        return sendError(reply, method, admitted);
      }
      request.call = admitted;
    },
    handler: (request, reply) => forward(request, reply, request.call),
  });

  /** The method and session of a call that may be made; otherwise the error with which it is answered. */
  async function admit(
    request: FastifyRequest,
    reply: FastifyReply,
    method: DescMethod | undefined,
  ): Promise<Call | ConnectError> {
    const session = await sessions.of(request);
    if (!session) return failure('UNAUTHENTICATED', 'You are signed out. Sign in again.');
    const { [SHOWN_ACCOUNT]: account = session.account, [SHOWN_MEMBER]: member = session.member } = request.headers;
    if (account !== session.account || member !== session.member) {
      reply.header(ACCOUNT_CHANGED, 'true');
      const message = 'In another tab, another account was opened or another person has signed in. Reload this page.';
      const info = { desc: ErrorInfoSchema, value: { reason: 'ACCOUNT_CHANGED', domain: 'signpost-dashboard' } };
      return new ConnectError(message, Code.FailedPrecondition, undefined, [info]);
    }
    if (!method) return failure('UNIMPLEMENTED', 'There is no such method for members.');
    if (!contentTypeRegExp.test(request.headers['content-type'] ?? '')) {
      return failure('INVALID_FIELD', 'content-type: must be one of the Connect protocol.');
    }
    if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) return messageTooLarge(MAX_ROWS_BYTES);
    return begin(session, reply) ?? { method, session };
  }

  async function forward(
    request: FastifyRequest,
    reply: FastifyReply,
    { method, session }: Call,
  ): Promise<FastifyReply> {
    if (reply.raw.destroyed) return reply.hijack();
    const closed = whileOpen(reply);
    using held = new DisposableStack();
    let body: Buffer;
    try {
      body = await receive(request.raw, session, held, closed);
    } catch (error) {
      discardBody(request, reply);
      return sendError(reply, method, ConnectError.from(error));
    }
    const longest = isStreaming(method) ? STREAM_MS : timeoutMs;
    const limitMs = Math.min(longest, requestedTimeout(request) ?? longest);
    const deadline = AbortSignal.timeout(limitMs + MARGIN_MS);
    const path = methodName(method);
    const call = calls.start(path);
    // A browser may leave a stream at any time. If the call has ended, this changes nothing.
    closed.addEventListener('abort', () => call.end(Code.Canceled));
    const failed = (cause: unknown) => {
      const isAbandoned = closed.aborted || stopping.signal.aborted;
      const error = deadline.aborted
        ? failure('DEADLINE_EXCEEDED', 'The core did not respond in time.', {}, cause)
        : failure('UNAVAILABLE', 'Signpost is unavailable. Try again shortly.', {}, cause);
      if (!deadline.aborted && !isAbandoned) logger.warn({ err: cause }, 'a call to the core failed');
      call.end(isAbandoned ? Code.Canceled : error.code);
      return error;
    };
    const headers = { ...forwardedHeaders(request), ...core.metadata(session), 'connect-timeout-ms': String(limitMs) };
    propagation.inject(call.tracing, headers);
    try {
      const response = await core.agent.request({
        origin: core.origin,
        path: `/${path}`,
        method: 'POST',
        headers,
        body,
        signal: AbortSignal.any([closed, deadline, ...(isStreaming(method) ? [stopping.signal] : [])]),
        headersTimeout: limitMs + MARGIN_MS,
        bodyTimeout: limitMs + MARGIN_MS,
      });
      // The core rejects the dashboard's service token. With this status a page would believe that its session has
      // ended.
      if (response.statusCode === 401) {
        call.end(Code.Unauthenticated);
        await response.body.dump();
        logger.error('the core does not accept the service token of the dashboard');
        return sendError(reply, method, failure('UNAVAILABLE', 'The dashboard is not configured correctly.'));
      }
      const isStream = isStreaming(method) && response.statusCode === 200;
      // Complete before the first byte is sent, so that a core that breaks off half way is still a proper error.
      const answer = isStream
        ? Readable.from(wholeMessages(response.body, failed, call))
        : Buffer.from(await response.body.arrayBuffer());
      if (Buffer.isBuffer(answer)) call.end(response.statusCode === 200 ? undefined : (codeIn(answer) ?? Code.Unknown));
      return reply.code(response.statusCode).headers(returnedHeaders(response)).send(answer);
    } catch (error) {
      return sendError(reply, method, failed(error));
    }
  }
}

interface Call {
  readonly method: DescMethod;
  readonly session: Session;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The method and session of an admitted call. */
    call: Call;
  }
}

/** The messages of a stream. If it breaks off, also in the middle of one, an error ends it as the protocol says. */
async function* wholeMessages(
  body: AsyncIterable<Uint8Array>,
  failed: (cause: unknown) => ConnectError,
  call: ObservedCall,
): AsyncGenerator<Uint8Array> {
  let hasEnded = false;
  let cause: unknown = new Error('the stream has no end');
  try {
    for await (const { flags, data } of transformSplitEnvelope(MAX_MESSAGE_BYTES)(body)) {
      hasEnded = (flags & endStreamFlag) !== 0;
      if (hasEnded) call.end(codeIn(data));
      yield encodeEnvelope(flags, data);
    }
  } catch (error) {
    cause = error;
  }
  if (!hasEnded) yield endOfStream(failed(cause));
}

/**
 * The code in an error of the core, or in the end of a stream if that has one. Both may be compressed: then it is
 * unknown.
 */
function codeIn(json: Uint8Array): Code | undefined {
  try {
    const { error, code = error?.code } = JSON.parse(Buffer.from(json).toString());
    return code === undefined ? undefined : (codeFromString(code) ?? Code.Unknown);
  } catch {
    return Code.Unknown;
  }
}

function forwardedHeaders({ headers }: FastifyRequest): Record<string, string> {
  return Object.fromEntries(
    REQUEST_HEADERS.flatMap((name) => {
      const value = headers[name];
      return value === undefined ? [] : [[name, String(value)]];
    }),
  );
}

function returnedHeaders({ headers }: Dispatcher.ResponseData): Record<string, string | string[]> {
  const returned = Object.entries(headers).filter(([name]) => RESPONSE_HEADERS.test(name));
  return Object.fromEntries(returned.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/** The timeout that the browser asks for, in ms. */
function requestedTimeout({ headers }: FastifyRequest): number | undefined {
  const value = headers['connect-timeout-ms'];
  return typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : undefined;
}
