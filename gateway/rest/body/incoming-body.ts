import type { IncomingMessage, ServerResponse } from 'node:http';
import { finished } from 'node:stream';
import { beginDiscarding, DISCARDED_BYTES, DISCARDED_MS } from '../../http/unwanted-body.ts';
import { Refusal } from '../refusal.ts';

const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i;

/** A body larger than its endpoint accepts. It was not read, so it has no fingerprint. */
class BodyTooLarge extends Refusal {
  constructor(maxBytes: number) {
    super('BODY_TOO_LARGE', `The body may have at most ${maxBytes} bytes.`);
  }
}

/** A body that did not arrive in time. It has no fingerprint either. */
class BodyTooSlow extends Refusal {
  constructor(ms: number) {
    super('REQUEST_TIMEOUT', `The body did not arrive within ${ms / 1_000} seconds.`);
  }
}

/** The body of a request, which is not read before `read` is called. */
export class IncomingBody {
  /** The `Content-Length` in bytes; Infinity for a chunked body. */
  readonly declaredBytes: number;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #awaitsContinue: boolean;

  constructor(request: IncomingMessage, response: ServerResponse) {
    const { headers, httpVersion } = request;
    this.#request = request;
    this.#response = response;
    this.declaredBytes = 'transfer-encoding' in headers ? Infinity : Number(headers['content-length'] ?? 0);
    this.#awaitsContinue = httpVersion === '1.1' && CONTINUE.test(headers.expect ?? '');
  }

  /** Whether the client waits for a 100 before it sends the body. Source: RFC 9110 §10.1.1. */
  get awaitsContinue(): boolean {
    return this.#awaitsContinue;
  }

  /** Whether a response now would leave a part unread that the client sends anyway. */
  get isUnread(): boolean {
    return this.declaredBytes > 0 && !this.#request.complete && !this.#awaitsContinue;
  }

  /** Throws BodyTooLarge if its `Content-Length` is larger. */
  expectAtMost(maxBytes: number): void {
    if (this.declaredBytes > maxBytes && this.declaredBytes !== Infinity) throw new BodyTooLarge(maxBytes);
  }

  /**
   * Reads the whole body. Its memory is allocated once, so that many small chunks take no more than a few large ones.
   * Rejects with BodyTooLarge, with BodyTooSlow after `ms`, and if the client disconnects.
   */
  read(maxBytes: number, ms: number): Promise<Buffer> {
    const request = this.#request;
    if (this.#awaitsContinue) {
      this.#awaitsContinue = false;
      this.#response.writeContinue();
    }
    const body = Buffer.allocUnsafeSlow(Math.min(this.declaredBytes, maxBytes));
    let bytes = 0;
    return new Promise((resolve, reject) => {
      const take = (chunk: Buffer) => {
        if (bytes + chunk.length > body.length) end(new BodyTooLarge(maxBytes));
        else bytes += chunk.copy(body, bytes);
      };
      const end = (error?: Error | null) => {
        clearTimeout(timer);
        forget();
        request.off('data', take).pause();
        if (error) reject(error);
        else resolve(body.subarray(0, bytes));
      };
      const timer = setTimeout(() => end(new BodyTooSlow(ms)), ms);
      const forget = finished(request, { writable: false }, end);
      request.on('data', take);
    });
  }

  /**
   * A response that ends only when the rest of the request was read and discarded, within limits. Closing earlier would
   * reset the connection, and a client that is still sending would lose the response (RFC 9112 §9.6).
   */
  async *drainBehind(response: Buffer): AsyncGenerator<Buffer> {
    yield response;
    using discarding = beginDiscarding();
    if (!discarding) return;
    const request = this.#request;
    const timer = setTimeout(() => request.destroy(), DISCARDED_MS);
    let bytes = 0;
    try {
      for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > DISCARDED_BYTES) break;
      }
    } catch {
      // The client disconnected or took too long: the response was sent.
    } finally {
      clearTimeout(timer);
    }
  }
}
