import type { Server as HttpServer } from 'node:http';
import type { Http2Server, ServerHttp2Session } from 'node:http2';
import type { Server } from 'node:net';
import type { Logger } from 'pino';
import { logAcceptErrors } from '../../common/runtime/accept-errors.ts';

/** How long a connection may take until it has said what it wants, in ms. */
export const HEAD_MS = 15_000;

/** How long an HTTP/2 connection is kept on which nothing happens, in ms. Clients connect anew when they next call. */
const IDLE_MS = 10 * 60_000;

/** How long a client may leave an answer unread, in ms. */
export const UNREAD_MS = 60_000;

/** Connections that a server keeps; further ones are closed. */
const MAX_CONNECTIONS = 4_096;

/** After how long the system asks a silent connection whether there is still somebody, in ms. */
const KEEP_ALIVE_MS = 60_000;

/** Bounds the connections of a server that listens, and logs those that it does not take. */
export function boundServer(server: Server, logger: Logger): void {
  server.maxConnections = MAX_CONNECTIONS;
  logAcceptErrors(server, logger);
  server.on('connection', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
}

/**
 * What an HTTP/2 connection may send between two looks without any call, in bytes, and the time between looks, in ms. Node
 * itself ends floods of settings, pings, priorities, empty frames and resets, and of data that no call waits for; window
 * updates took 34 ns of CPU each for as long as they came.
 */
const CALLLESS_BYTES = 1024 * 1024;
const LOOK_MS = 5_000;

/** Closes HTTP/2 connections on which nothing happens, and those on which much does but no call. */
export function boundSessions(server: Http2Server): void {
  const looks = new Set<() => void>();
  const looking = setInterval(() => {
    for (const look of looks) look();
  }, LOOK_MS).unref();
  server.once('close', () => clearInterval(looking));

  server.on('session', (session: ServerHttp2Session) => {
    const { socket } = session;
    let [open, begun, read] = [0, 0, 0];
    const look = () => {
      const bytes = socket.bytesRead - read;
      if (bytes > CALLLESS_BYTES && open === 0 && begun === 0) session.destroy();
      read += bytes;
      begun = 0;
    };
    looks.add(look);
    session.once('close', () => looks.delete(look));
    session.on('stream', (stream) => {
      open++;
      begun++;
      stream.once('close', () => open--);
    });
    let greeted = false;
    session.setTimeout(HEAD_MS, () => {
      // Calls in hand end on their own.
      if (greeted) session.close();
      else session.destroy();
    });
    session.once('remoteSettings', () => {
      greeted = true;
      session.setTimeout(IDLE_MS);
    });
  });
}

/** Closes HTTP/1.1 connections whose clients do not read their answers: Node keeps them. */
export function boundUnread(server: HttpServer, unreadMs = UNREAD_MS): void {
  server.setTimeout(unreadMs, (socket) => {
    if (socket.writableLength > 0) socket.destroy();
  });
}
