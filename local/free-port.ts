import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** The host that all processes of a local run listen on, except for those that `LISTEN_HOST` is for. */
export const LOOPBACK = '127.0.0.1';

/**
 * Ports outside the ephemeral range (on Linux from 32,768): a free one stays free until it is listened on, whatever
 * outgoing connections are opened meanwhile. Browsers refuse 10,080 and some smaller ones
 * (Fetch Standard, "Port blocking").
 */
const [MIN_PORT, MAX_PORT] = [10_081, 32_767];

let [first, last] = [MIN_PORT, MAX_PORT];
let next = randomInt(first, last + 1);

/** A free port of the loopback interface. Each call returns another one: it is only listened on after the call. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = next;
    next = port === last ? first : port + 1;
    if (await isFree(port)) return port;
  }
}

/**
 * Restricts this process to one of `of` equal ranges: processes that start servers at the same time never get the same
 * port.
 */
export function takeFreePortsFrom(range: number, of: number): void {
  const size = Math.floor((MAX_PORT - MIN_PORT + 1) / of);
  first = MIN_PORT + range * size;
  last = first + size - 1;
  next = randomInt(first, last + 1);
}

/** Whether a server could listen on the port now. */
export async function isFree(port: number, host = LOOPBACK): Promise<boolean> {
  const server = createServer().listen(port, host);
  try {
    await once(server, 'listening');
  } catch {
    // Whatever the reason (in use, privileged), the port can't be used.
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
