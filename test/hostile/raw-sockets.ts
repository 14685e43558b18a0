import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long a server may take to close a connection that its client has half-closed, in ms. */
const END_MS = 10_000;

/** Connections to one port, over which a test sends arbitrary bytes. */
export interface RawSockets {
  open(): Socket;
  /** Sends the pieces and half-closes; resolves to what was received once the server has closed the connection. */
  exchange(...pieces: Pieces): Promise<Buffer>;
  /** Sends the pieces; resolves to what was received once that `suffices` or the server has closed the connection. */
  answersTo(pieces: Pieces, suffices: (received: Buffer) => boolean): Promise<Buffer>;
  /** Sends the bytes and resets the connection. */
  reset(bytes: string | Buffer): Promise<void>;
  destroyAll(): void;
}

/** Sent so that the server reads each separately, as far as possible; each character of a string is a byte. */
export type Pieces = readonly (string | Buffer)[];

export function rawSockets(port: () => number): RawSockets {
  const opened = new Set<Socket>();

  function open(): Socket {
    const socket = connect({ port: port(), host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    opened.add(socket.once('close', () => opened.delete(socket)));
    return socket.on('error', () => undefined);
  }

  function receive(socket: Socket, pieces: Pieces, suffices: (received: Buffer) => boolean): Promise<Buffer> {
    let received = Buffer.alloc(0);
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      if (suffices(received)) socket.destroy();
    });
    socket.on('end', () => socket.end());
    return new Promise((resolve, reject) => {
      socket.setTimeout(END_MS, () => {
        socket.destroy();
        reject(new Error(`no end after ${JSON.stringify(pieces.map(String))} and ${received}`));
      });
      socket.once('close', () => resolve(received));
    });
  }

  async function send(socket: Socket, pieces: Pieces): Promise<void> {
    if (socket.connecting) await new Promise<void>((resolve) => socket.once('connect', resolve));
    for (const piece of pieces) {
      if (socket.writable) socket.write(toBytes(piece));
      await sleep(1);
    }
  }

  return {
    open,
    exchange(...pieces) {
      const socket = open();
      send(socket, pieces).then(() => socket.end());
      return receive(socket, pieces, () => false);
    },
    answersTo(pieces, suffices) {
      const socket = open();
      send(socket, pieces);
      return receive(socket, pieces, suffices);
    },
    async reset(bytes) {
      const socket = open();
      await send(socket, [bytes]);
      socket.resetAndDestroy();
    },
    destroyAll() {
      for (const socket of opened) socket.destroy();
    },
  };
}

function toBytes(piece: string | Buffer): Buffer {
  return typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece;
}

/** Runs `work` for each item, with bounded concurrency. */
export async function forEach<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const rest = [...items];
  const one = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: 16 }, one));
}

/** The statuses of the answers received on an HTTP/1.1 connection, in order. */
export function statusesIn(answers: Buffer): number[] {
  const text = answers.toString('latin1');
  return [...text.matchAll(/(?:^|\r\n\r\n|[}>])HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}
