import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setImmediate as pollEnds, setTimeout as sleep } from 'node:timers/promises';
import { portFailure } from './port.ts';

/** Where a worker finds its socket of the port: behind standard input, output, error and the channel to its parent. */
const DESCRIPTOR = 4;
/** How long no connection may have come before the port is closed, and how long that is waited for at most, in ms. */
const QUIET_MS = 50;
const CLOSE_MS = 500;
const CHECK_MS = 5;

/** Accepts connections from the socket that the first process has bound to the port. */
export async function listen(server: Server, port: number): Promise<void> {
  try {
    await once(server.listen({ fd: DESCRIPTOR }), 'listening');
  } catch (error) {
    throw portFailure(port, error as NodeJS.ErrnoException);
  }
}

/**
 * Closes the port once nothing waits in its queue, as the kernel resets what waits there. Until then the queue takes one
 * connection at a time: the kernel leaves the others unanswered, and their clients try again after a second. Resolves
 * when the port is closed; calls `ended` when all connections are.
 */
export async function closePort(server: Server, ended: () => void): Promise<void> {
  const start = performance.now();
  let last = start;
  server.on('connection', () => {
    last = performance.now();
  });
  // Node has no other way to change it while a server listens; without it, connections may come for ever.
  (server as { _handle?: { listen?(backlog: number): number } })._handle?.listen?.(0);
  do {
    await sleep(CHECK_MS);
    // All that waits is accepted by then, so that there is next to no time left for another one to come.
    await pollEnds();
  } while (performance.now() - last < QUIET_MS && performance.now() - start < CLOSE_MS);
  // Node's HTTP server would also close connections whose next request is under way.
  Reflect.apply(NetServer.prototype.close, server, [ended]);
}
