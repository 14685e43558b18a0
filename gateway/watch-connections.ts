import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { clientOf } from './address-limits.ts';
import { unmapped } from './redirect/answer/origin.ts';

/** How long a client may take to read what was written, in ms, and how often that is checked. */
const UNREAD_MS = 60_000;
const CHECK_MS = 5_000;

/**
 * Watches all connections of a server, whoever answers on them. Resets those that an address opens beyond
 * `mostPerAddress`, unless it is a trusted proxy, and those whose client does not read its answer: neither Node nor the
 * kernel gives up on one that acknowledges now and then. Call it last, as it has to hear of a connection first.
 */
export function watchConnections(
  server: Server,
  mostPerAddress: number,
  isProxy: (address: string) => boolean,
): { close(): void } {
  /** Since which check each has had something unread; 0 for none. */
  const unread = new Map<Socket, number>();
  const counts = new Map<string, number>();
  let checks = 0;

  server.prependListener('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket;
    const client = isProxy(remoteAddress) ? undefined : clientOf(unmapped(remoteAddress));
    if (client !== undefined) {
      const count = counts.get(client) ?? 0;
      if (count >= mostPerAddress) {
        socket.resetAndDestroy();
        return;
      }
      counts.set(client, count + 1);
    }
    unread.set(socket, 0);
    socket.once('close', () => {
      unread.delete(socket);
      if (client === undefined) return;
      const left = (counts.get(client) ?? 0) - 1;
      if (left > 0) counts.set(client, left);
      else counts.delete(client);
    });
  });

  const checking = setInterval(() => {
    checks++;
    for (const [socket, since] of unread) {
      if (socket.writableLength === 0) unread.set(socket, 0);
      else if (since === 0) unread.set(socket, checks);
      else if ((checks - since) * CHECK_MS >= UNREAD_MS) socket.destroy();
    }
  }, CHECK_MS).unref();
  return { close: () => clearInterval(checking) };
}
