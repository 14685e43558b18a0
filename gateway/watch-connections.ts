import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { logAcceptErrors } from '../common/runtime/accept-errors.ts';
import { limitAtOnce } from './address-limits.ts';
import { unmapped } from './origin.ts';
import type { CountRefusal } from './refusal-metrics.ts';

/** How long a client may take to read what was written, in ms, and how often that is checked. */
const UNREAD_MS = 60_000;
const CHECK_MS = 5_000;

/** The pause after a search for an idle connection that found none, in ms: searching 10,000 takes a few ms. */
const NONE_IDLE_MS = 100;

/** Limits on the connections of a server. */
export interface ConnectionLimits {
  /** Maximum connections per client address; a trusted proxy may have any number. */
  readonly mostPerAddress: number;
  /** Maximum connections of all addresses together. */
  readonly most: number;
  isProxy(address: string): boolean;
  /** Whether a request is being answered on a connection that was not handed over to Node's server. */
  isAnswering(socket: Socket): boolean;
  readonly countRefusal: CountRefusal;
  readonly logger: Logger;
}

interface Connection {
  /** The number of the first check that found unread data; 0 if there is none. */
  unreadSince: number;
  /** Bytes transferred when `closeIdle` last checked it. */
  transferred: number;
  /** The response to the latest request that Node's server has read. */
  response: ServerResponse | undefined;
}

/**
 * Watches all connections of a server, in both lanes. Resets those that an address opens beyond its limit, and closes
 * those whose client does not read its response: neither Node nor the kernel gives up on a client that acknowledges now
 * and then. When there are too many in total, a new one replaces an idle one, and is reset only if none is idle. Call it
 * after other listeners were added, as its own must run first.
 */
export function watchConnections(server: Server, limits: ConnectionLimits): { close(): void } {
  /** In the order in which `closeIdle` checks them. */
  const connections = new Map<Socket, Connection>();
  const open = limitAtOnce(limits.mostPerAddress);
  let checks = 0;
  let noneIdleUntil = 0;

  /**
   * Closes approximately the longest idle connection: the first that has transferred nothing since its last check, so that
   * neither lane has to record times. Connections that are slow to send a request or to read a response count as idle too,
   * or slow clients could occupy all of them. Returns false if a request is being answered on every connection.
   */
  function closeIdle(): boolean {
    if (performance.now() < noneIdleUntil) return false;
    let checksLeft = 2 * connections.size;
    for (const [socket, connection] of connections) {
      if (checksLeft-- === 0) break;
      const transferred = socket.bytesRead + socket.bytesWritten - socket.writableLength;
      connections.delete(socket);
      if (transferred === connection.transferred && !isAnswering(socket, connection)) {
        limits.countRefusal('idle_connections');
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
    return limits.isAnswering(socket) || (response?.req.complete === true && !response.writableFinished);
  }

  logAcceptErrors(server, limits.logger);
  server.prependListener('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket;
    const closed = limits.isProxy(remoteAddress) ? () => {} : open(unmapped(remoteAddress));
    if (!closed) {
      limits.countRefusal('address_connections');
      socket.resetAndDestroy();
      return;
    }
    if (connections.size >= limits.most && !closeIdle()) {
      limits.countRefusal('connections');
      socket.resetAndDestroy();
      closed();
      return;
    }
    connections.set(socket, { unreadSince: 0, transferred: 0, response: undefined });
    socket.on('close', () => {
      connections.delete(socket);
      closed();
    });
  });
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    server.prependListener(event, (_request, response: ServerResponse) => {
      const connection = connections.get(response.req.socket);
      if (connection) connection.response = response;
    });
  }

  const checking = setInterval(() => {
    checks++;
    for (const [socket, connection] of connections) {
      if (socket.writableLength === 0) connection.unreadSince = 0;
      else if (connection.unreadSince === 0) connection.unreadSince = checks;
      else if ((checks - connection.unreadSince) * CHECK_MS >= UNREAD_MS) socket.destroy();
    }
  }, CHECK_MS).unref();
  return { close: () => clearInterval(checking) };
}
