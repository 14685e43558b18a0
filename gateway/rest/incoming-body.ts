import type { IncomingMessage, ServerResponse } from 'node:http';
import { finished } from 'node:stream';
import { Refusal } from './refusal.ts';

/** How much of a body that nobody wants is still taken off the wire, in bytes, and for how long, in ms. */
const DRAIN_BYTES = 32 * 1024 * 1024;
const DRAIN_MS = 5_000;

const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i;

/** A body larger than its endpoint takes. Nobody has read it, so it has no fingerprint. */
export class BodyTooLarge extends Refusal {
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

/** The body of a request, of which nothing is read before somebody asks for it. */
export class IncomingBody {
  /** Bytes, as the request declares them; Infinity for a body in chunks. */
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

  /** Whether the client sends nothing before it is told to. Source: RFC 9110 §10.1.1. */
  get awaitsContinue(): boolean {
    return this.#awaitsContinue;
  }

  /** Whether an answer now would leave some of it unread that the client sends all the same. */
  get isUnread(): boolean {
    return this.declaredBytes > 0 && !this.#request.complete && !this.#awaitsContinue;
  }

  /**
   * All of it. Its memory is allocated once, so that many small chunks take no more than few large ones. Rejects with
   * BodyTooLarge, with BodyTooSlow after `ms`, and when the client leaves.
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
   * An answer that ends only when the rest of the request has been taken off the wire, within bounds. Closing earlier
   * would reset the connection, and the client would lose the answer while it still sends (RFC 9112 §9.6).
   */
  async *drainBehind(answer: Buffer): AsyncGenerator<Buffer> {
    yield answer;
    const request = this.#request;
    const timer = setTimeout(() => request.destroy(), DRAIN_MS);
    let bytes = 0;
    try {
      for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > DRAIN_BYTES) break;
      }
    } catch {
      // The client went away, or took too long: it has had its answer.
    } finally {
      clearTimeout(timer);
    }
  }
}
