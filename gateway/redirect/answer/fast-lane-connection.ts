import type { Socket } from 'node:net';
import type { Page } from './pages.ts';
import type { Head } from './read-head.ts';
import type { ScanHandler } from './scan-handler.ts';
import type { Reply, ScanHeaders, ScanRequest } from './scan-request.ts';

/** State and callbacks that all connections of the fast lane share. */
export interface LaneContext {
  readonly scans: ScanHandler;
  readHead(bytes: Buffer): Head | undefined;
  /** Passes a connection to Node's HTTP server, with the bytes read so far put back into the socket. */
  takeOver(socket: Socket): void;
  /** Called with the socket of each connection that was closed or handed over. */
  released(socket: Socket): void;
  /** Limits what the client of a connection leaves unread, until it is closed or the returned function is called. */
  watchUnread(socket: Socket): () => void;
  /** Whether to close each connection after its next response. */
  stopping: boolean;
  /** Whether to close connections without a pending response, too. */
  ended: boolean;
  /** The number of idle sweeps so far: a clock that is cheap to read. */
  sweeps: number;
}

const REASON_PHRASES: Readonly<Record<number, string>> = {
  200: 'OK',
  404: 'Not Found',
  410: 'Gone',
  429: 'Too Many Requests',
  503: 'Service Unavailable',
};

const NO_HEADERS: ScanHeaders = {};

/** Answers the scans on a connection one at a time, in the order of arrival. */
export class FastLaneConnection implements Reply, ScanRequest {
  readonly peer: string;
  method = '';
  shortCode: string | undefined;
  query = '';
  headers = NO_HEADERS;
  /** The sweep number (`LaneContext.sweeps`) at which bytes last arrived, or a response was still being sent. */
  lastActiveSweep: number;
  /** Whether the last response was sent, so that only the client's FIN is outstanding. */
  isClosing = false;
  readonly #lane: LaneContext;
  readonly #socket: Socket;
  /** Whether the current request is the last one of this connection. */
  #isLast = false;
  /** Whether a request is being answered, or a response is waiting for the client to read it. */
  #isBusy = false;

  constructor(lane: LaneContext, socket: Socket) {
    this.#lane = lane;
    this.#socket = socket;
    this.lastActiveSweep = lane.sweeps;
    this.peer = socket.remoteAddress ?? '';
    socket.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose);
  }

  /** Whether a request is being answered, or a response waits for the client to read it. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Whether a part of a response waits for the client to read it. */
  get isSending(): boolean {
    return this.#socket.writableLength > 0;
  }

  readonly #onData = (bytes: Buffer) => {
    this.lastActiveSweep = this.#lane.sweeps;
    if (this.#isBusy) {
      this.#unread(bytes);
      return;
    }
    const head = this.#lane.readHead(bytes);
    if (!head) {
      this.#handOver(bytes);
      return;
    }
    this.#isBusy = true;
    if (head.end < bytes.length) this.#unread(bytes.subarray(head.end));
    this.method = head.method;
    this.shortCode = head.shortCode;
    this.query = head.query;
    this.headers = head.headers;
    this.#isLast = head.last;
    this.#lane.scans.answer(this, this);
  };

  /**
   * Bytes after the current request stay in the socket, which is paused while it has any. So 'end' cannot be emitted
   * before them, and both can still be handed over to Node's server.
   */
  #unread(bytes: Buffer): void {
    this.#socket.pause();
    this.#socket.unshift(bytes);
  }

  redirect(requestId: string, location: string): void {
    this.#send(
      `HTTP/1.1 302 Found\r\nx-request-id: ${requestId}\r\nlocation: ${location}\r\ncache-control: no-store\r\ncontent-length: 0\r\n`,
    );
  }

  page(requestId: string, status: number, page: Page, extra: Readonly<Record<string, string>> = {}): void {
    const lines = Object.entries({ ...page.headers, ...extra }).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#send(
      `HTTP/1.1 ${status} ${REASON_PHRASES[status]}\r\nx-request-id: ${requestId}\r\n${lines.join('')}cache-control: no-store\r\ncontent-length: ${page.body.length}\r\n`,
      this.method === 'HEAD' ? undefined : page.body,
    );
  }

  methodNotAllowed(): void {
    throw new Error('readHead accepted a method other than GET and HEAD');
  }

  #send(head: string, body?: Buffer): void {
    this.#isBusy = false;
    // An idle connection that kept its last request alive would have it promoted to the old generation, which is costly
    // to collect.
    this.headers = NO_HEADERS;
    this.shortCode = undefined;
    this.query = '';
    const socket = this.#socket;
    if (socket.destroyed) return;
    const isLast = this.#isLast || this.#lane.stopping || socket.readableEnded;
    const text = `${head}date: ${date()}\r\n${isLast ? 'connection: close\r\n' : ''}\r\n`;
    if (body) socket.cork();
    socket.write(text, 'latin1');
    if (body) {
      socket.write(body);
      socket.uncork();
    }
    const unwatch = socket.writableLength > 0 ? this.#lane.watchUnread(socket) : undefined;
    if (isLast) this.#close();
    else if (unwatch) this.#waitUntilSent(unwatch);
    else if (socket.isPaused()) socket.resume();
  }

  /**
   * Stops reading from a client that does not read its responses. So a connection has nothing unread when it is handed
   * over.
   */
  #waitUntilSent(unwatch: () => void): void {
    this.#isBusy = true;
    // Unlike 'drain', this also reports the end of less than the stream's high-water mark.
    this.#socket.pause().write('', () => {
      unwatch();
      this.#isBusy = false;
      if (this.#socket.destroyed) return;
      if (this.#lane.ended || this.#socket.readableEnded) this.#close();
      else this.#socket.resume();
    });
  }

  /**
   * A client that has sent its last request is not waited for, like in Node's server. Ending the socket first would be
   * another system call and another wake-up of the client: it took 6 µs more of a connection. Otherwise what still
   * arrives is discarded: closing at once would reset the connection, and the client could lose responses.
   */
  #close(): void {
    this.isClosing = true;
    const socket = this.#socket.off('data', this.#onData);
    if (this.#isLast && socket.readableLength === 0) {
      // The kernel still sends what it has taken.
      if (socket.writableLength === 0) socket.destroy();
      else socket.destroySoon();
      return;
    }
    socket.end();
    socket.resume();
  }

  #handOver(bytes: Buffer): void {
    const socket = this.#socket;
    socket.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose);
    this.#lane.released(this.#socket);
    socket.unshift(bytes);
    this.#lane.takeOver(socket);
  }

  readonly #onEnd = () => {
    // Ending a socket twice creates an error with its stack, which took 6 µs of each connection.
    if (!this.#isBusy && !this.isClosing) this.#socket.end();
  };

  readonly #onClose = () => {
    this.#lane.released(this.#socket);
  };

  /** Closes the connection unless a response is pending. */
  end(): void {
    if (!this.#isBusy) this.#close();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

let [cachedSecond, cachedDate] = [0, ''];

/** The current time as a `Date` header value. */
function date(): string {
  const now = Math.floor(Date.now() / 1_000);
  if (now !== cachedSecond) [cachedSecond, cachedDate] = [now, new Date(now * 1_000).toUTCString()];
  return cachedDate;
}
