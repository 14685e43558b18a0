import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as ConnectionServer, type Socket } from 'node:net';
import { closeListener, closePort } from '../../common/http/close-port.ts';
import { listenFailure } from '../../common/http/listen-failure.ts';

/** The descriptor of a worker's first listening socket, after standard input, output, error and the IPC channel. */
const FIRST_DESCRIPTOR = 4;

/**
 * The connections that may wait at the sockets of a worker together while it is replaced; the kernel lowers the limit
 * of a socket to `net.core.somaxconn`, 4,096 by default. Node's default is 511.
 */
const BACKLOG = 4_096;

/** Accepts connections. */
export interface Listening {
  /**
   * Stops accepting connections; resolves when that is done, and calls `ended` when all connections have ended.
   * `isInherited`: another process keeps the sockets, so that waiting connections are accepted by whoever listens next.
   */
  stop(isInherited: boolean, ended: () => void): Promise<void>;
}

/**
 * Accepts a server's connections from the `sockets` sockets that the main process has bound to the port, or was given.
 */
export async function listen(server: Server, port: number, sockets: number): Promise<Listening> {
  const listeners = [server, ...Array.from({ length: sockets - 1 }, () => acceptFor(server))];
  const backlog = Math.ceil(BACKLOG / sockets);
  try {
    const started = listeners.map((each, index) =>
      once(each.listen({ fd: FIRST_DESCRIPTOR + index, backlog }), 'listening'),
    );
    await Promise.all(started);
  } catch (error) {
    throw listenFailure('PORT', port, error);
  }
  return {
    async stop(isInherited, ended) {
      let open = listeners.length;
      const listenerEnded = () => {
        open--;
        if (open === 0) ended();
      };
      const stopped = listeners.map((each, index) =>
        isInherited ? closeListener(each, listenerEnded) : closePort(each, FIRST_DESCRIPTOR + index, listenerEnded),
      );
      await Promise.all(stopped);
    },
  };
}

/**
 * Creates a listener that passes its connections to a server, as if the server had accepted them: Node's have one
 * socket each.
 */
function acceptFor(server: Server): ConnectionServer {
  // The options of Node's HTTP servers.
  const listener = new ConnectionServer({ allowHalfOpen: true, noDelay: true });
  listener.on('connection', (socket: Socket) => server.emit('connection', socket));
  listener.once('listening', () => listener.on('error', (error) => server.emit('error', error)));
  return listener;
}
