import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setImmediate as pollEnds, setTimeout as sleep } from 'node:timers/promises';
import { ignoreNewConnections } from './ignore-new-connections.ts';
import { portFailure } from './port.ts';

/** The descriptor of a worker's listening socket, after standard input, output, error and the IPC channel. */
const SOCKET_DESCRIPTOR = 4;
/** The port is closed after this long without a new connection, and after `CLOSE_MS` at the latest, in ms. */
const QUIET_MS = 100;
const CLOSE_MS = 500;
const CHECK_MS = 5;

/** Accepts connections from the socket that the main process has bound to the port. */
export async function listen(server: Server, port: number): Promise<void> {
  try {
    await once(server.listen({ fd: SOCKET_DESCRIPTOR }), 'listening');
  } catch (error) {
    throw portFailure(port, error as NodeJS.ErrnoException);
  }
}

/**
 * Closes the port once no connection has arrived for a moment, because the kernel resets those that are still in the accept
 * queue. Resolves when the port is closed; calls `ended` when all connections are.
 */
export async function closePort(server: Server, ended: () => void): Promise<void> {
  ignoreNewConnections(SOCKET_DESCRIPTOR);
  const start = performance.now();
  let last = start;
  server.on('connection', () => {
    last = performance.now();
  });
  do {
    await sleep(CHECK_MS);
    // All queued connections are accepted by then.
    await pollEnds();
  } while (performance.now() - last < QUIET_MS && performance.now() - start < CLOSE_MS);
  // http.Server.close() would also close connections whose next request is already on its way.
  Reflect.apply(NetServer.prototype.close, server, [ended]);
}
