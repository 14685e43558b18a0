import { once } from 'node:events';
import type { Server } from 'node:http';
import { closeListener, closePort } from '../../common/runtime/close-port.ts';
import { listenFailure } from '../../common/runtime/listen-failure.ts';

/** The descriptor of a worker's listening socket, after standard input, output, error and the IPC channel. */
const SOCKET_DESCRIPTOR = 4;

/**
 * The connections that may wait to be accepted while a process is replaced; the kernel lowers it to `net.core.somaxconn`,
 * 4,096 by default. Node's default is 511.
 */
const BACKLOG = 4_096;

/** Accepts connections from the socket that the main process has bound to the port, or was given. */
export async function listen(server: Server, port: number): Promise<void> {
  try {
    await once(server.listen({ fd: SOCKET_DESCRIPTOR, backlog: BACKLOG }), 'listening');
  } catch (error) {
    throw listenFailure('PORT', port, error);
  }
}

/**
 * Stops accepting connections; resolves when that is done, and calls `ended` when all connections have ended. `isInherited`:
 * another process keeps the socket, so that waiting connections are accepted by whoever listens next.
 */
export async function stopListening(server: Server, isInherited: boolean, ended: () => void): Promise<void> {
  if (isInherited) closeListener(server, ended);
  else await closePort(server, SOCKET_DESCRIPTOR, ended);
}
