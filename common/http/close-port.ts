import { Server } from 'node:net';
import { setImmediate as pollEnds, setTimeout as sleep } from 'node:timers/promises';
import { ignoreNewConnections } from './ignore-new-connections.ts';

/** The port is closed after this long without a new connection, and after `CLOSE_MS` at the latest, in ms. */
const QUIET_MS = 100;
const CLOSE_MS = 500;
const CHECK_MS = 5;

/**
 * Closes the port of a server once no connection has arrived for a moment, because the kernel resets those that are
 * still in the accept queue. Resolves when the port is closed; calls `ended` when all connections are.
 *
 * `descriptor`: of the listening socket, if new connections shall be ignored meanwhile.
 */
export async function closePort(server: Server, descriptor: number | undefined, ended: () => void): Promise<void> {
  if (descriptor !== undefined) ignoreNewConnections(descriptor);
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
  closeListener(server, ended);
}

/**
 * Closes the listening socket only: `close` of Node's HTTP servers would also close connections whose next request is
 * already on its way.
 */
export function closeListener(server: Server, ended: () => void): void {
  Reflect.apply(Server.prototype.close, server, [ended]);
}

/** The descriptor of a server's listening socket; Node has no public name for it. */
export function descriptorOf(server: Server): number | undefined {
  const { _handle: handle } = server as { _handle?: { fd?: number } };
  return handle?.fd !== undefined && handle.fd >= 0 ? handle.fd : undefined;
}
