import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorBody } from './errors.ts';
import { newRequestId, requestId } from './request-id.ts';

/**
 * How long a connection stays open after its last answer, in ms: closing it while the client still sends would reset it,
 * and the client could lose the answer (RFC 9112 §9.6).
 */
const LINGER_MS = 2_000;

const UNREADABLE = 'This is not an HTTP request that can be read.';

/** Answers what Node's HTTP parser rejects, in the form of every other error. */
export interface ClientErrors {
  /** Remembers a request whose answer has to be sent before any error of its connection. */
  add(response: ServerResponse): void;
  /** How many answers the connection waits for. */
  waiting(socket: Socket): number;
}

/**
 * Listens to `clientError` and `connect`. Both come as soon as the bytes are read, when requests that were sent before
 * them may still wait for their answers: these are sent first.
 */
export function answerClientErrors(server: Server): ClientErrors {
  const unanswered = new WeakMap<Socket, Set<ServerResponse>>();
  const closing = new WeakSet<Socket>();

  function afterAnswers(socket: Socket, status: string, sentence: string): void {
    // The parser reports an error for each further piece that arrives.
    if (closing.has(socket)) return;
    closing.add(socket);
    socket.on('error', ignore);
    // At the client's half-close Node would end the connection with the answer under way.
    socket.removeAllListeners('end');
    const responses = [...(unanswered.get(socket) ?? [])];
    const [last] = responses.slice(-1);
    const broken = last?.req.complete ? undefined : last;
    const lastComplete = responses.findLast((response) => response !== broken);
    // A second answer to a request that has one already would be taken for that of the next.
    const close = () => answerAndClose(socket, broken?.headersSent ? undefined : errorAnswer(status, sentence));
    if (lastComplete) lastComplete.once('close', close);
    else close();
  }

  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket: Socket) => {
    if (code === 'ECONNRESET' || socket.destroyed) socket.destroy();
    else if (code === 'HPE_HEADER_OVERFLOW') {
      // Not a 431, so that the contract holds for an idempotency key of any length.
      afterAnswers(socket, '400 Bad Request', 'The headers of the request are too large.');
    } else if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
      // Nor a 408.
      afterAnswers(socket, '400 Bad Request', 'The request took too long to arrive.');
    } else afterAnswers(socket, '400 Bad Request', UNREADABLE);
  });
  server.on('connect', (request, stream) => {
    // Node has taken its listeners off the socket. With a body, `stream` is a stream of its own in front of it.
    stream.on('error', ignore);
    afterAnswers(request.socket, '400 Bad Request', 'This server is not a proxy: CONNECT is not possible.');
  });

  return {
    add(response) {
      const { socket } = response.req;
      const responses = unanswered.get(socket) ?? new Set();
      unanswered.set(socket, responses.add(response));
      response.once('close', () => responses.delete(response));
    },
    waiting: (socket) => unanswered.get(socket)?.size ?? 0,
  };
}

function ignore(): void {}

function errorAnswer(status: string, sentence: string): string {
  const json = JSON.stringify({ error: sentence } satisfies ErrorBody);
  return [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(json)}`,
    `X-Request-Id: ${newRequestId()}`,
    'Connection: close',
    '',
    json,
  ].join('\r\n');
}

/** Closes the connection when the client does, or at the end of the time that it has for that. */
function answerAndClose(socket: Socket, answer: string | undefined): void {
  if (socket.writable) socket.end(answer ?? '');
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}

/** Answers a request that has been read but must not be answered otherwise, and closes its connection. */
export function refuseRequest(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  sentence: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const json = JSON.stringify({ error: sentence } satisfies ErrorBody);
  response
    .writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(json),
      'x-request-id': requestId(request),
      connection: 'close',
      ...headers,
    })
    .end(json);
}
