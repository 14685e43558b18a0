import type { Socket } from 'node:net';
import type { Scans } from './answer-scans.ts';
import type { Page } from './pages.ts';
import type { Head } from './read-head.ts';
import type { Reply, ScanHeaders, ScanRequest } from './scan-request.ts';

/** What connections have in common. */
export interface Lane {
  readonly scans: Scans;
  readHead(bytes: Buffer): Head | undefined;
  /** Takes a connection over with a request that is not for us, and all that was read of it. */
  takeOver(socket: Socket): void;
  /** Told of each that is not ours any more. */
  left(socket: Socket): void;
  /** Whether each answer ends its connection. */
  stopping: boolean;
  /** A clock that is cheap to read. */
  sweeps: number;
}

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  404: 'Not Found',
  410: 'Gone',
  429: 'Too Many Requests',
  503: 'Service Unavailable',
};

const NONE: ScanHeaders = {};

/** Answers the scans on a connection one after the other, in their order. */
export class Connection implements Reply, ScanRequest {
  readonly peer: string;
  method = '';
  shortCode: string | undefined;
  headers = NONE;
  /** When something came last, by the sweeps since the start. */
  swept: number;
  /** Whether the last answer was sent, so that only the client's end is waited for. */
  isEnding = false;
  readonly #lane: Lane;
  readonly #socket: Socket;
  /** Whether the request that is being answered is the last one. */
  #last = false;
  #busy = false;

  constructor(lane: Lane, socket: Socket) {
    this.#lane = lane;
    this.#socket = socket;
    this.swept = lane.sweeps;
    this.peer = socket.remoteAddress ?? '';
    socket.on('data', this.#read).on('end', this.#ended).on('close', this.#forget);
  }

  /** Whether a request is being answered, or an answer waits to be read. */
  get isBusy(): boolean {
    return this.#busy;
  }

  readonly #read = (bytes: Buffer) => {
    this.swept = this.#lane.sweeps;
    if (this.#busy) {
      this.#putBack(bytes);
      return;
    }
    const head = this.#lane.readHead(bytes);
    if (!head) {
      this.#handOver(bytes);
      return;
    }
    this.#busy = true;
    if (head.end < bytes.length) this.#putBack(bytes.subarray(head.end));
    this.method = head.method;
    this.shortCode = head.shortCode;
    this.headers = head.headers;
    this.#last = head.last;
    this.#lane.scans.answer(this, this);
  };

  /**
   * What came behind the request that is being answered stays in the socket, which is paused as long as it has any. So
   * its end does not arrive before it, and Node's server can still be given both.
   */
  #putBack(bytes: Buffer): void {
    this.#socket.pause();
    this.#socket.unshift(bytes);
  }

  redirect(requestId: string, location: string): void {
    this.#send(
      `HTTP/1.1 302 Found\r\nx-request-id: ${requestId}\r\nlocation: ${location}\r\ncache-control: no-store\r\ncontent-length: 0\r\n`,
    );
  }

  page(requestId: string, status: number, page: Page, more: Readonly<Record<string, string>> = {}): void {
    const lines = Object.entries({ ...page.headers, ...more }).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#send(
      `HTTP/1.1 ${status} ${REASONS[status]}\r\nx-request-id: ${requestId}\r\n${lines.join('')}cache-control: no-store\r\ncontent-length: ${page.body.length}\r\n`,
      this.method === 'HEAD' ? undefined : page.body,
    );
  }

  methodNotAllowed(): void {
    throw new Error('a head with another method was read');
  }

  #send(head: string, body?: Buffer): void {
    this.#busy = false;
    // What a connection that says nothing for long kept of its last request would be moved to memory that is costly to clear.
    this.headers = NONE;
    this.shortCode = undefined;
    const socket = this.#socket;
    if (socket.destroyed) return;
    const last = this.#last || this.#lane.stopping || socket.readableEnded;
    const text = `${head}date: ${date()}\r\n${last ? 'connection: close\r\n' : ''}\r\n`;
    if (body) socket.cork();
    let taken = socket.write(text, 'latin1');
    if (body) {
      taken = socket.write(body);
      socket.uncork();
    }
    if (last) this.#close();
    else if (!taken) this.#waitForReader();
    else if (socket.isPaused()) socket.resume();
  }

  /** Nothing more is read from a client that does not read. */
  #waitForReader(): void {
    this.#busy = true;
    this.#socket.pause();
    this.#socket.once('drain', () => {
      this.#busy = false;
      this.#socket.resume();
    });
  }

  /** What still arrives is thrown away: closing at once would reset the connection, and the client could lose answers. */
  #close(): void {
    this.isEnding = true;
    this.#socket.off('data', this.#read).end();
    this.#socket.resume();
  }

  #handOver(bytes: Buffer): void {
    const socket = this.#socket;
    socket.off('data', this.#read).off('end', this.#ended).off('close', this.#forget);
    this.#lane.left(this.#socket);
    socket.unshift(bytes);
    this.#lane.takeOver(socket);
  }

  readonly #ended = () => {
    if (!this.#busy) this.#socket.end();
  };

  readonly #forget = () => {
    this.#lane.left(this.#socket);
  };

  /** Ends the connection unless an answer is in hand. */
  end(): void {
    if (!this.#busy) this.#close();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

let [second, dated] = [0, ''];

/** The time for `Date` headers. */
function date(): string {
  const now = Math.floor(Date.now() / 1_000);
  if (now !== second) [second, dated] = [now, new Date(now * 1_000).toUTCString()];
  return dated;
}
