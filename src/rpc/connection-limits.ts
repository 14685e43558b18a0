import type { Server as HttpServer } from 'node:http';
import type { Http2Server, ServerHttp2Session } from 'node:http2';
import type { Server } from 'node:net';

/** How long a client may take to send its first request head or HTTP-2 settings, in ms. */
export const HEAD_MS = 15_000;

/** How long an idle HTTP/2 connection is kept, in ms. Clients reconnect on their next call. */
const IDLE_MS = 10 * 60_000;

/** How long a client may leave an answer unread, in ms. */
export const UNREAD_MS = 60_000;

/** Maximum connections of a server; further ones are closed. */
const MAX_CONNECTIONS = 4_096;

/** Idle time after which the system sends TCP keep-alive probes, in ms. */
const KEEP_ALIVE_MS = 60_000;

/** Limits the connections of a listening server. Without the error listener a failed `accept` would end the process. */
export function limitConnections(server: Server): void {
  server.maxConnections = MAX_CONNECTIONS;
  server.on('error', () => {});
  server.on('connection', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
}

/** Closes idle HTTP/2 connections. */
export function limitSessions(server: Http2Server): void {
  server.on('session', (session: ServerHttp2Session) => {
    let settingsReceived = false;
    session.setTimeout(HEAD_MS, () => {
      // Running calls may finish.
      if (settingsReceived) session.close();
      else session.destroy();
    });
    session.once('remoteSettings', () => {
      settingsReceived = true;
      session.setTimeout(IDLE_MS);
    });
  });
}

/** Closes HTTP/1.1 connections whose clients do not read responses: Node keeps them open. */
export function limitUnread(server: HttpServer, unreadMs = UNREAD_MS): void {
  server.setTimeout(unreadMs, (socket) => {
    if (socket.writableLength > 0) socket.destroy();
  });
}
