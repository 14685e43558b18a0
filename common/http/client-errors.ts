import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * How long a connection stays open after its last response, in ms: closing it while the client still sends would reset
 * it, and the client could lose the response (RFC 9112 §9.6).
 */
const LINGER_MS = 2_000;

const UNREADABLE = 'Malformed HTTP request.';

/** Responds to requests that Node's HTTP parser rejects, in the format of all other errors. */
export interface ClientErrors {
  /** Registers a response to be sent, before any error response of its connection. */
  add(response: ServerResponse): void;
  /** The number of pending responses of a connection. */
  waiting(socket: Socket): number;
}

/** The format of errors: the JSON that contains a sentence, and further headers. */
export interface ErrorFormat {
  json(sentence: string): object;
  headers?(): Readonly<Record<string, string>>;
}

/**
 * Listens to `clientError` and `connect`. Both are emitted as soon as the bytes are parsed, while responses to earlier
 * requests of the connection may still be pending: these are sent first. If the rest of a request is malformed that has
 * been answered before it arrived, there is no second response.
 */
export function answerClientErrors(server: Server, format: ErrorFormat): ClientErrors {
  /** Responses that are not sent, or whose requests have not arrived. */
  const pending = new WeakMap<Socket, Set<ServerResponse>>();
  const closing = new WeakSet<Socket>();

  function respondAfterPending(socket: Socket, status: string, sentence: string): void {
    // The parser reports an error for each further chunk.
    if (closing.has(socket)) return;
    closing.add(socket);
    socket.on('error', ignore);
    // When the client half-closes, Node would end the connection while the response is being sent.
    socket.removeAllListeners('end');
    const responses = [...(pending.get(socket) ?? [])];
    const [last] = responses.slice(-1);
    const broken = last?.req.complete ? undefined : last;
    const lastComplete = responses.findLast((response) => response !== broken && !response.closed);
    // A second response to a request would be taken as the response to the next one.
    const close = () =>
      respondAndClose(socket, broken?.headersSent ? undefined : errorResponse(status, sentence, format));
    if (lastComplete) lastComplete.once('close', close);
    else close();
  }

  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket: Socket) => {
    if (code === 'ECONNRESET' || socket.destroyed) socket.destroy();
    else if (code === 'HPE_HEADER_OVERFLOW') {
      // Not a 431, so that the contract holds for an idempotency key of any length.
      respondAfterPending(socket, '400 Bad Request', 'The headers of the request are too large.');
    } else if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
      // Not a 408, which the contract does not list.
      respondAfterPending(socket, '400 Bad Request', 'The request took too long to arrive.');
    } else respondAfterPending(socket, '400 Bad Request', UNREADABLE);
  });
  server.on('connect', (request, stream) => {
    // Node has removed its listeners from the socket. With a body, `stream` is a separate stream on top of it.
    stream.on('error', ignore);
    respondAfterPending(request.socket, '400 Bad Request', 'This server is not a proxy: CONNECT is not supported.');
  });

  return {
    add(response) {
      const { socket } = response.req;
      const responses = pending.get(socket) ?? new Set();
      pending.set(socket, responses.add(response));
      const remove = () => responses.delete(response);
      response.once('close', () => {
        if (response.req.complete) remove();
        else response.req.once('close', remove);
      });
    },
    waiting: (socket) => pending.get(socket)?.size ?? 0,
  };
}

function ignore(): void {}

function errorResponse(status: string, sentence: string, { json: jsonOf, headers }: ErrorFormat): string {
  const json = JSON.stringify(jsonOf(sentence));
  return [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(json)}`,
    `Date: ${new Date().toUTCString()}`,
    ...Object.entries(headers?.() ?? {}).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
    '',
    json,
  ].join('\r\n');
}

/** Responds and closes the connection when the client does, or after `LINGER_MS`. */
function respondAndClose(socket: Socket, answer: string | undefined): void {
  if (socket.writable) socket.end(answer ?? '');
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}
