import { constants, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Server } from 'node:net';

/** How long a connection may take until it has said what it wants, in ms. */
export const HEAD_MS = 15_000;

/** How long an HTTP/2 connection is kept on which nothing happens, in ms. Clients connect anew when they next call. */
const IDLE_MS = 10 * 60_000;

/** How long a client has to end a request that has been answered, in ms. */
const UNREAD_MS = 1_000;

/** Connections that a server keeps; further ones are closed. */
const MAX_CONNECTIONS = 4_096;

/** After how long the system asks a silent connection whether there is still somebody, in ms. */
const KEEP_ALIVE_MS = 60_000;

/** Bounds the connections of a server that listens. Without a listener, a failed `accept` would end the process. */
export function boundServer(server: Server): void {
  server.maxConnections = MAX_CONNECTIONS;
  server.on('error', () => {});
  server.on('connection', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
}

/** Lets go of HTTP/2 connections that say nothing, and of requests that have been answered without being read. */
export function boundSessions(server: Http2Server): void {
  server.on('session', (session: ServerHttp2Session) => {
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
  server.on('stream', closeUnread);
}

/**
 * Closes a stream whose call was answered before its request had arrived, as a refused one is: a client that goes on
 * sending would keep it. Source: RFC 9113 §8.1.
 */
function closeUnread(stream: ServerHttp2Stream): void {
  stream.once('finish', () => {
    if (stream.readableEnded) return;
    setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), UNREAD_MS).unref();
  });
}
