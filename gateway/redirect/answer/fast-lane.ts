import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Scans } from './answer-scans.ts';
import { Connection, type Lane } from './connection.ts';
import { headReader } from './read-head.ts';

/** Connections that carry nothing but scans. */
export interface FastLane {
  /** From now on, each answer ends its connection. */
  drain(): void;
  /** Ends each connection with the answer that is in hand, or at once where there is none. */
  end(): void;
  /** Ends them all, whatever is in hand. */
  destroy(): void;
  /** Whether a scan is being answered on this connection; false for one that was handed over. */
  isAnswering(socket: Socket): boolean;
}

/** A connection that nothing came over for this long is ended. Longer than proxies keep theirs, so that they end them. */
const IDLE_MS = 75_000;
const SWEEP_MS = 5_000;
/** The same after its last answer. */
const ENDING_MS = 5_000;

/**
 * Takes the server's connections and answers the scans on them without Node's HTTP server, whose own work for a request
 * is more than all of ours. It takes only what `headReader` takes; with the first request of any other kind the
 * connection goes to Node's server, with all that was read, and stays there.
 */
export function openFastLane(server: Server, scans: Scans, countryHeader: string | undefined): FastLane {
  const [standard] = server.listeners('connection');
  if (standard === undefined) throw new Error('the server takes no connections');
  const connections = new Map<Socket, Connection>();
  const lane: Lane = {
    scans,
    readHead: headReader(countryHeader),
    takeOver: (socket) => void Reflect.apply(standard as (socket: Socket) => void, server, [socket]),
    left: (socket) => void connections.delete(socket),
    stopping: false,
    sweeps: 0,
  };

  const sweeper = setInterval(() => {
    lane.sweeps++;
    for (const connection of connections.values()) {
      const most = connection.isEnding ? ENDING_MS : IDLE_MS;
      if ((lane.sweeps - connection.swept) * SWEEP_MS > most) connection.destroy();
    }
  }, SWEEP_MS).unref();

  server.removeAllListeners('connection');
  server.on('connection', (socket) => {
    // For as long as it lives: whoever has a socket later may lack a listener for a moment, which would end the process.
    socket.on('error', () => undefined);
    connections.set(socket, new Connection(lane, socket));
  });
  return {
    drain() {
      lane.stopping = true;
    },
    end() {
      lane.stopping = true;
      clearInterval(sweeper);
      for (const connection of connections.values()) connection.end();
    },
    destroy() {
      for (const connection of connections.values()) connection.destroy();
    },
    isAnswering: (socket) => connections.get(socket)?.isBusy === true,
  };
}
