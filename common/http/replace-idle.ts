import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The pause after a search for an idle connection that found none, in ms: searching 10,000 takes a few ms. */
const NONE_IDLE_MS = 100;

interface Connection {
  /** Bytes transferred when `closeIdle` last checked it. */
  transferred: number;
  /** The response to the latest request that Node's server has read. */
  response: ServerResponse | undefined;
}

/** The connections of a server, limited in total. */
export interface LimitedConnections {
  /**
   * Counts a new connection; false, and it is not counted, if there are too many and none is idle. Its end has to be
   * reported to `closed`: a listener here, beside the caller's, would make new connections slower.
   */
  admit(socket: Socket): boolean;
  /** Must be called when a counted connection has closed. */
  closed(socket: Socket): void;
  /** The open ones. */
  sockets(): Iterable<Socket>;
}

/**
 * Limits the connections of a server in total: a new one replaces an idle one. Call it after other listeners were
 * added, as its own must run first.
 */
export function replaceIdle(
  server: Server,
  options: {
    /** Maximum connections. */
    readonly most: number;
    /** Whether a request is being answered on a connection that was not handed over to Node's server. */
    isAnswering?(socket: Socket): boolean;
    /** Called for each idle connection that is closed. */
    onReplaced?(): void;
  },
): LimitedConnections {
  /** In the order in which `closeIdle` checks them. */
  const connections = new Map<Socket, Connection>();
  let noneIdleUntil = 0;

  /**
   * Closes approximately the longest idle connection: the first that has transferred nothing since its last check, so
   * that nobody has to record times. Connections that are slow to send a request or to read a response count as idle
   * too, or slow clients could occupy all of them. Returns false if a request is being answered on every connection.
   */
  function closeIdle(): boolean {
    if (performance.now() < noneIdleUntil) return false;
    let checksLeft = 2 * connections.size;
    for (const [socket, connection] of connections) {
      if (checksLeft-- === 0) break;
      const transferred = socket.bytesRead + socket.bytesWritten - socket.writableLength;
      connections.delete(socket);
      if (transferred === connection.transferred && !isAnswering(socket, connection)) {
        options.onReplaced?.();
        socket.destroy();
        return true;
      }
      connection.transferred = transferred;
      // Moved to the end, where this loop checks it again.
      connections.set(socket, connection);
    }
    noneIdleUntil = performance.now() + NONE_IDLE_MS;
    return false;
  }

  function isAnswering(socket: Socket, { response }: Connection): boolean {
    if (socket.writableLength > 0) return false;
    return options.isAnswering?.(socket) || (response?.req.complete === true && !response.writableFinished);
  }

  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    // Node itself answers requests with `Expect` only if nothing listens: they would wait forever, and count as being
    // answered.
    if (server.listenerCount(event) === 0) continue;
    server.prependListener(event, (_request, response: ServerResponse) => {
      const connection = connections.get(response.req.socket);
      if (connection) connection.response = response;
    });
  }
  return {
    admit(socket) {
      if (connections.size >= options.most && !closeIdle()) return false;
      connections.set(socket, { transferred: 0, response: undefined });
      return true;
    },
    closed: (socket) => void connections.delete(socket),
    sockets: () => connections.keys(),
  };
}
