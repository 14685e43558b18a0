import type { Http2Server, ServerHttp2Session } from 'node:http2';
import type { Server } from 'node:net';
import type { Logger } from 'pino';
import { logAcceptErrors } from '../../common/http/accept-errors.ts';

/** How long a client may take to send its first request head or HTTP-2 settings, in ms. */
export const HEAD_MS = 15_000;

/** How long an idle HTTP/2 connection is kept, in ms. Clients reconnect on their next call. */
const IDLE_MS = 10 * 60_000;

/** Maximum connections of a server; further ones are closed. */
const MAX_CONNECTIONS = 4_096;

/** Idle time after which the system sends TCP keep-alive probes, in ms. */
const KEEP_ALIVE_MS = 60_000;

/** Limits the connections of a listening server, and logs those that it does not accept. */
export function limitConnections(server: Server, logger: Logger): void {
  server.maxConnections = MAX_CONNECTIONS;
  logAcceptErrors(server, logger);
  server.on('connection', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
}

/**
 * The bytes that an HTTP/2 connection may send between two checks without a call, and the time between checks, in ms.
 * Node itself ends floods of settings, pings, priorities, empty frames and resets, and of data that no call waits for;
 * window updates took 34 ns of CPU each for as long as they came.
 */
const BYTES_WITHOUT_CALL = 1024 * 1024;
const CHECK_MS = 5_000;

/** Closes HTTP/2 connections that are idle, and those that send much without any call. */
export function limitSessions(server: Http2Server): void {
  const checks = new Set<() => void>();
  const checking = setInterval(() => {
    for (const check of checks) check();
  }, CHECK_MS).unref();
  server.once('close', () => clearInterval(checking));

  server.on('session', (session: ServerHttp2Session) => {
    const { socket } = session;
    let [open, started, read] = [0, 0, 0];
    const check = () => {
      // Between its end and `close` a session has no socket: reading from it would throw.
      if (session.destroyed) return;
      const bytes = socket.bytesRead - read;
      if (bytes > BYTES_WITHOUT_CALL && open === 0 && started === 0) session.destroy();
      read += bytes;
      started = 0;
    };
    checks.add(check);
    session.once('close', () => checks.delete(check));
    session.on('stream', (stream) => {
      open++;
      started++;
      stream.once('close', () => open--);
    });
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
