import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

/** What undici gets instead of the bytes that it has read; null: nothing more for now. */
export type ReadFilter = (bytes: Buffer | null) => Buffer | null;

/** Lets undici read each connection through a filter, which `filterOf` returns once the connection is established. */
export function filterReads(
  connect: buildConnector.connector,
  filterOf: (socket: Socket) => ReadFilter,
): buildConnector.connector {
  return (options, callback) => {
    connect(options, (...result) => {
      const [, socket] = result;
      if (socket) {
        const read = socket.read.bind(socket);
        const filter = filterOf(socket);
        socket.read = (size) => filter(read(size));
      }
      callback(...result);
    });
  };
}
