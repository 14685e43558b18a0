import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { KEEP_ALIVE_MS } from '../../../common/http/http-limits.ts';
import { watchResponse } from '../../../common/http/unread-responses.ts';
import type { CountRefusal } from '../../http/refusal-metrics.ts';
import { FastLaneConnection, type LaneContext } from './fast-lane-connection.ts';
import { headReader } from './read-head.ts';
import type { ScanHandler } from './scan-handler.ts';

/** The connections that have carried nothing but scans so far. */
export interface FastLane {
  /** From now on, closes each connection after its next response. */
  drain(): void;
  /** Closes each connection after its pending response, or at once if it has none. */
  end(): void;
  /** Destroys all connections, pending responses included. */
  destroy(): void;
  /** Whether a scan is being answered on this connection; false for one that was handed over. */
  isAnswering(socket: Socket): boolean;
}

/** How often idle connections are closed, in ms. */
const SWEEP_MS = 5_000;
/** How long a connection may stay open once its last response is sent, in ms. */
const CLOSING_MS = 5_000;

/**
 * Accepts the server's connections and answers the scans on them without Node's HTTP server, whose overhead for a
 * request exceeds all of our own work. It handles only what `headReader` accepts; at the first other request the
 * connection is handed over to Node's server, with all bytes read so far, and stays there.
 */
export function openFastLane(
  server: Server,
  scans: ScanHandler,
  countryHeader: string | undefined,
  countRefusal: CountRefusal,
): FastLane {
  const [nodeHandler] = server.listeners('connection');
  if (nodeHandler === undefined) throw new Error('the server has no connection listener');
  const connections = new Map<Socket, FastLaneConnection>();
  const lane: LaneContext = {
    scans,
    readHead: headReader(countryHeader),
    takeOver: (socket) => void Reflect.apply(nodeHandler as (socket: Socket) => void, server, [socket]),
    released: (socket) => void connections.delete(socket),
    watchUnread: (socket) =>
      watchResponse(socket, () => {
        if (!socket.destroyed) countRefusal('unread_answers');
        socket.destroy();
      }),
    stopping: false,
    ended: false,
    sweeps: 0,
  };

  const sweeper = setInterval(() => {
    lane.sweeps++;
    for (const connection of connections.values()) {
      // What the client still reads has a limit of its own (`watchConnections`).
      if (connection.isSending) connection.lastActiveSweep = lane.sweeps;
      const limitMs = connection.isClosing ? CLOSING_MS : KEEP_ALIVE_MS;
      if ((lane.sweeps - connection.lastActiveSweep) * SWEEP_MS > limitMs) connection.destroy();
    }
  }, SWEEP_MS).unref();

  server.removeAllListeners('connection');
  server.on('connection', (socket) => {
    // Never removed: after a hand-over the socket may briefly have no other listener, and an error would end the
    // process.
    socket.on('error', () => undefined);
    connections.set(socket, new FastLaneConnection(lane, socket));
  });
  return {
    drain() {
      lane.stopping = true;
    },
    end() {
      lane.stopping = true;
      lane.ended = true;
      clearInterval(sweeper);
      for (const connection of connections.values()) connection.end();
    },
    destroy() {
      for (const connection of connections.values()) connection.destroy();
    },
    isAnswering: (socket) => connections.get(socket)?.isBusy === true,
  };
}
