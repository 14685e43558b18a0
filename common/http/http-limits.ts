import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { watchResponse } from './unread-responses.ts';

/** How long a client may leave a response unread, in ms. */
export const UNREAD_MS = 60_000;

/**
 * How long a connection may be idle, in ms: longer than a proxy keeps it, which should close it first. Caddy's default
 * is longer, so deploy/caddy/Caddyfile and docs/domains.md set 60 s.
 */
export const KEEP_ALIVE_MS = 75_000;

/**
 * Maximum requests in progress on an HTTP/1.1 connection. Hardly any client sends one before the previous is answered.
 */
const MAX_PIPELINED = 10;

/** Closes HTTP/1.1 connections whose clients do not read responses: Node keeps them open. */
export function limitUnread(server: Server, unreadMs = UNREAD_MS): void {
  server.setTimeout(unreadMs, (socket) => {
    if (socket.writableLength > 0) socket.destroy();
  });
}

/**
 * Wraps the request listeners of a server, which must have been added before. Closes connections with too many requests
 * in progress: Node starts all that a client sends at once, and 100,000 fit into 10 MB (pipelining, RFC 9112 §9.3.2).
 */
export function limitPipelining(server: Server): void {
  const handlers = server.listeners('request');
  const inProgress = new WeakMap<Socket, number>();
  server.removeAllListeners('request');
  server.on('request', (request, response) => {
    const { socket } = request;
    const count = inProgress.get(socket) ?? 0;
    // Node has also read what followed in the same packet.
    if (socket.destroyed || count >= MAX_PIPELINED) {
      socket.destroy();
      return;
    }
    inProgress.set(socket, count + 1);
    watchResponse(response, () => socket.destroy());
    response.once('close', () => inProgress.set(socket, (inProgress.get(socket) ?? 1) - 1));
    for (const handle of handlers) handle.call(server, request, response);
  });
}
