import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { logAcceptErrors } from '../common/runtime/accept-errors.ts';
import { limitAtOnce } from './address-limits.ts';
import type { CountRefusal } from './metrics.ts';
import { unmapped } from './redirect/answer/origin.ts';

/** How long a client may take to read what was written, in ms, and how often that is checked. */
const UNREAD_MS = 60_000;
const CHECK_MS = 5_000;

/** How long no idle connection is looked for after none was found, in ms: looking at 10,000 takes some of them. */
const NONE_IDLE_MS = 100;

/** What the connections of a server are held to. */
export interface ConnectionLimits {
  /** Connections of a client address; a trusted proxy may have any number. */
  readonly mostPerAddress: number;
  /** Connections of all addresses together. */
  readonly most: number;
  isProxy(address: string): boolean;
  /** Whether a request is being answered on a connection that Node's server has not been given. */
  isAnswering(socket: Socket): boolean;
  readonly countRefusal: CountRefusal;
  readonly logger: Logger;
}

interface Connection {
  /** Since which check something has been unread; 0 for nothing. */
  unread: number;
  /** Bytes that it had transferred when `makeRoom` last looked at it. */
  transferred: number;
  /** To its latest request that Node's server has read. */
  response: ServerResponse | undefined;
}

/**
 * Watches all connections of a server, whoever answers on them. Resets those that an address opens beyond its limit, and
 * those whose client does not read its answer: neither Node nor the kernel gives up on one that acknowledges now and
 * then. When there are too many in all, a new one takes the place of one that is idle, and is reset only when none is.
 * Call it last, as it has to hear of a connection first.
 */
export function watchConnections(server: Server, limits: ConnectionLimits): { close(): void } {
  /** Those that `makeRoom` looks at next come first. */
  const connections = new Map<Socket, Connection>();
  const open = limitAtOnce(limits.mostPerAddress);
  let checks = 0;
  let noneIdleUntil = 0;

  /**
   * Closes about the longest idle connection: the first on which nothing has moved since the last look, so that neither
   * lane has to keep time for it. Whoever is slow to send a request or to read an answer is idle as well; else slow
   * clients could take all the room. False when each is being answered.
   */
  function makeRoom(): boolean {
    if (performance.now() < noneIdleUntil) return false;
    let looks = 2 * connections.size;
    for (const [socket, connection] of connections) {
      if (looks-- === 0) break;
      const transferred = socket.bytesRead + socket.bytesWritten - socket.writableLength;
      connections.delete(socket);
      if (transferred === connection.transferred && !isAnswering(socket, connection)) {
        limits.countRefusal('idle_connections');
        socket.destroy();
        return true;
      }
      connection.transferred = transferred;
      // The loop comes to it again.
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
    socket.once('close', closed);
    if (connections.size >= limits.most && !makeRoom()) {
      limits.countRefusal('connections');
      socket.resetAndDestroy();
      return;
    }
    connections.set(socket, { unread: 0, transferred: 0, response: undefined });
    socket.once('close', () => connections.delete(socket));
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
      if (socket.writableLength === 0) connection.unread = 0;
      else if (connection.unread === 0) connection.unread = checks;
      else if ((checks - connection.unread) * CHECK_MS >= UNREAD_MS) socket.destroy();
    }
  }, CHECK_MS).unref();
  return { close: () => clearInterval(checking) };
}
