import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** The host that everything of a local run listens on. */
export const LOOPBACK = '127.0.0.1';

/**
 * Ports that systems hand to nobody by themselves (Linux begins at 32,768): one that is free stays so until it is
 * listened on, whatever connects to wherever meanwhile.
 */
const [LEAST, MOST] = [10_000, 32_767];

/** A port of the loopback interface that nothing listens on now. */
export async function freePort(): Promise<number> {
  let port = randomInt(LEAST, MOST);
  while (!(await isFree(port))) port = randomInt(LEAST, MOST);
  return port;
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
