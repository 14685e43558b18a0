import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { logAcceptErrors } from '../../common/http/accept-errors.ts';
import { clientOf } from '../../common/http/client-of.ts';
import { UNREAD_MS } from '../../common/http/http-limits.ts';
import { replaceIdle } from '../../common/http/replace-idle.ts';
import { limitAtOnce } from '../../common/queues/limit-at-once.ts';
import type { CountRefusal } from './refusal-metrics.ts';

/** How often it is checked whether clients read what was written, in ms. */
const CHECK_MS = 5_000;

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

/**
 * Watches all connections of a server, in both lanes. Resets those that an address opens beyond its limit, and closes
 * those whose client does not read its response: neither Node nor the kernel gives up on a client that acknowledges now
 * and then. When there are too many in total, a new one replaces an idle one, and is reset only if none is idle. Call
 * it after other listeners were added, as its own must run first.
 */
export function watchConnections(server: Server, limits: ConnectionLimits): { close(): void } {
  /** The number of the first check that found unread data of a connection. */
  const unreadSince = new WeakMap<Socket, number>();
  const open = limitAtOnce(limits.mostPerAddress);
  let checks = 0;

  logAcceptErrors(server, limits.logger);
  const connections = replaceIdle(server, {
    most: limits.most,
    isAnswering: limits.isAnswering,
    onReplaced: () => limits.countRefusal('idle_connections'),
  });
  server.prependListener('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket;
    const closed = limits.isProxy(remoteAddress) ? () => {} : open(clientOf(remoteAddress));
    if (!closed) {
      limits.countRefusal('address_connections');
      socket.resetAndDestroy();
      return;
    }
    if (!connections.admit(socket)) {
      limits.countRefusal('connections');
      socket.resetAndDestroy();
      closed();
      return;
    }
    socket.on('close', () => {
      connections.closed(socket);
      closed();
    });
  });

  const checking = setInterval(() => {
    checks++;
    for (const socket of connections.sockets()) {
      const since = unreadSince.get(socket);
      if (socket.writableLength === 0) unreadSince.delete(socket);
      else if (since === undefined) unreadSince.set(socket, checks);
      else if ((checks - since) * CHECK_MS >= UNREAD_MS) socket.destroy();
    }
  }, CHECK_MS).unref();
  return { close: () => clearInterval(checking) };
}
