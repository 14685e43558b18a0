import { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2';
import { Code, ConnectError } from '@connectrpc/connect';
import { validateResponse, validateTrailer } from '@connectrpc/connect/protocol-grpc';
import type { Http2SessionManager } from '@connectrpc/connect-node';
import { MAX_ROWS_BYTES } from '../../common/contract/limits.ts';
import { releaseWhenClosed } from '../../common/http/release-closed-stream.ts';

/**
 * Larger than any page and any image: a row has up to `MAX_ROWS_BYTES`, and a NUL in an invalid one is stored as a
 * character of three bytes.
 */
const MAX_MESSAGE_BYTES = 4 * MAX_ROWS_BYTES;

/** The flag and length before each message (gRPC over HTTP/2, "Length-Prefixed-Message"). */
const PREFIX_BYTES = 5;

/** A unary call. */
export interface UnaryCall {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Serialized. */
  readonly message: readonly Uint8Array[];
  /** When the call fails, of `performance.now()`. */
  readonly failsAt: number;
  readonly signal: AbortSignal | undefined;
}

export interface UnaryResponse {
  readonly headers: IncomingHttpHeaders;
  readonly message: Buffer;
}

/** The server has not processed the call, which may therefore be sent again. `cause` is a `ConnectError`. */
export class NotProcessedError extends Error {
  constructor(failure: unknown) {
    super('the core has not processed the call', { cause: connectionLost(failure) });
  }
}

/**
 * Makes a unary gRPC call (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). Rejects with a
 * `ConnectError`, which contains what the server sent, or with a `NotProcessedError`. Calls took 40 to 48 µs of CPU
 * this way, and 127 to 132 with the client of grpc-js.
 */
export async function callUnary(session: Http2SessionManager, call: UnaryCall): Promise<UnaryResponse> {
  const timeoutMs = Math.ceil(call.failsAt - performance.now());
  if (call.signal?.aborted) throw canceled();
  if (timeoutMs <= 0) throw deadlineExceeded();
  let stream: ClientHttp2Stream;
  try {
    stream = await session.request('POST', call.path, requestHeaders(call.headers, timeoutMs), {});
  } catch (error) {
    throw new NotProcessedError(error);
  }
  releaseWhenClosed(stream);
  return await new Promise((resolve, reject) => {
    const fail = (error: ConnectError) => {
      reject(error);
      stream.close(constants.NGHTTP2_CANCEL);
    };
    const timer = setTimeout(() => fail(deadlineExceeded()), timeoutMs);
    const onAbort = () => fail(canceled());
    call.signal?.addEventListener('abort', onAbort);
    const response = new ResponseReader();
    stream.on('response', (headers) => response.addHeaders(headers));
    stream.on('data', (bytes: Buffer) => {
      if (response.addData(bytes) > MAX_MESSAGE_BYTES + PREFIX_BYTES) {
        fail(new ConnectError('The core’s response is too large.', Code.ResourceExhausted));
      }
    });
    stream.on('trailers', (trailers) => response.addTrailers(trailers));
    let failure: unknown;
    stream.on('error', (error) => {
      failure = error;
    });
    // Emitted last, whatever happened, also if the connection is lost.
    stream.on('close', () => {
      clearTimeout(timer);
      call.signal?.removeEventListener('abort', onAbort);
      try {
        resolve(response.end(stream.rstCode, failure));
      } catch (error) {
        reject(error);
      }
    });
    if (call.signal?.aborted) onAbort();
    else stream.end(framed(call.message));
  });
}

/** What has arrived of a response. */
class ResponseReader {
  #headers: (IncomingHttpHeaders & IncomingHttpStatusHeader) | undefined;
  #trailers: IncomingHttpHeaders | undefined;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  addHeaders(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): void {
    this.#headers = headers;
  }

  /** Returns the number of bytes so far. */
  addData(bytes: Buffer): number {
    this.#chunks.push(bytes);
    this.#length += bytes.length;
    return this.#length;
  }

  addTrailers(trailers: IncomingHttpHeaders): void {
    this.#trailers = trailers;
  }

  /** Returns the response, or throws its error. */
  end(rstCode: number, failure: unknown): UnaryResponse {
    const headers = this.#headers;
    if (!headers) {
      if (rstCode === constants.NGHTTP2_REFUSED_STREAM) throw new NotProcessedError(failure);
      throw connectionLost(failure);
    }
    // Nearly every response; the Fetch API's `Headers` that the library needs would cost a tenth of the call.
    if (!isPlainSuccess(headers, this.#trailers)) validate(headers, this.#trailers, failure);
    return { headers, message: this.#message() };
  }

  #message(): Buffer {
    const [first] = this.#chunks;
    const data = this.#chunks.length === 1 && first ? first : Buffer.concat(this.#chunks);
    if (data.length < PREFIX_BYTES || data[0] !== 0 || data.readUInt32BE(1) !== data.length - PREFIX_BYTES) {
      throw new ConnectError('The core’s response is not one uncompressed message.', Code.Internal);
    }
    return data.subarray(PREFIX_BYTES);
  }
}

function requestHeaders(headers: Readonly<Record<string, string>>, timeoutMs: number): Record<string, string> {
  return { ...headers, te: 'trailers', 'content-type': 'application/grpc', 'grpc-timeout': `${timeoutMs}m` };
}

const CONTENT_TYPES: readonly unknown[] = ['application/grpc+proto', 'application/grpc'];

/** Whether a response is a success, by less than all rules. */
function isPlainSuccess(
  headers: IncomingHttpHeaders & IncomingHttpStatusHeader,
  trailers: IncomingHttpHeaders | undefined,
): boolean {
  return (
    headers[':status'] === 200 &&
    CONTENT_TYPES.includes(headers['content-type']) &&
    headers['grpc-status'] === undefined &&
    trailers?.['grpc-status'] === '0' &&
    trailers['grpc-status-details-bin'] === undefined
  );
}

/** Throws the error of a response if it is one. */
function validate(
  received: IncomingHttpHeaders & IncomingHttpStatusHeader,
  trailers: IncomingHttpHeaders | undefined,
  failure: unknown,
): void {
  const headers = toHeaders(received);
  const { foundStatus, headerError } = validateResponse(Number(received[':status']), headers);
  if (headerError) throw headerError;
  if (!trailers && !foundStatus) throw connectionLost(failure);
  validateTrailer(toHeaders(trailers ?? {}), headers);
}

function toHeaders(received: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const [key, value] of Object.entries(received)) {
    if (value !== undefined && !key.startsWith(':')) headers.set(key, String(value));
  }
  return headers;
}

function framed(message: readonly Uint8Array[]): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(
    message.reduce((length, part) => length + part.length, 0),
    1,
  );
  return Buffer.concat([prefix, ...message]);
}

function connectionLost(cause: unknown): ConnectError {
  return new ConnectError('The connection to the core was lost.', Code.Unavailable, undefined, undefined, cause);
}

function deadlineExceeded(): ConnectError {
  return new ConnectError('The core did not respond in time.', Code.DeadlineExceeded);
}

/** The error of a call whose signal was aborted. */
export function canceled(): ConnectError {
  return new ConnectError('The caller cancelled the call.', Code.Canceled);
}
