import { once } from 'node:events';
import { createServer } from 'node:net';

/** The host that everything of a local run listens on. */
export const LOOPBACK = '127.0.0.1';

/** A port of the loopback interface that nothing listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, LOOPBACK);
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('The system gave no port.');
  return address.port;
}

/** Whether a server could listen on the port now. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, LOOPBACK);
  try {
    await once(server, 'listening');
  } catch {
    // Whatever the reason (taken, privileged), the answer is the same.
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
