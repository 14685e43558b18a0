import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { type AddressInfo, BoundSocket, connect, createServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { listenFailure } from '../../common/http/listen-failure.ts';

/** The listening sockets of the gateway's port. Each worker has some of its own if there are enough. */
export interface Port {
  readonly number: number;
  /** Whether another process opened the sockets and keeps them. */
  readonly isInherited: boolean;
  /** The file descriptors of a worker's sockets. */
  descriptors(worker: number): readonly number[];
  /** Closes this process's copies: from now on only the workers hold the sockets. */
  close(): void;
}

/**
 * How many sockets each worker has. In an iteration of its event loop libuv accepts one connection from each, so that
 * the answers to several scans share an iteration, a write to the spool, and often a wake-up of their client.
 */
const SOCKETS_OF_WORKER = 8;
/**
 * How long to wait for a port in use, in ms. A worker that was starting when its gateway was killed holds it until it
 * notices: 4 s on a busy machine.
 */
const IN_USE_MS = 10_000;
/** After this time it is logged, in ms: the other processes of a killed gateway end sooner. */
const REPORT_MS = 1_000;
const RETRY_MS = 50;
/** The timeout of a local connection, in ms: one that takes longer is waiting for a full accept queue. */
const CONNECT_MS = 500;

/**
 * Binds sockets for each worker to the port, and keeps them open: connections in the accept queues of a worker that
 * dies are answered by its successor. The kernel distributes connections evenly over such sockets; with one socket for
 * all workers, 32 connections opened at once all went to one of two workers in one of three attempts. On systems that
 * don't distribute connections (macOS), all workers share one socket nevertheless.
 */
export async function bindPort(host: string, port: number, workers: number, logger: Logger): Promise<Port> {
  const start = performance.now();
  let isReported = false;
  try {
    const { address } = await lookup(host);
    for (; ; await sleep(RETRY_MS)) {
      try {
        return await bind(address, port, workers);
      } catch (error) {
        const waited = performance.now() - start;
        if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || waited > IN_USE_MS) throw error;
        if (waited > REPORT_MS && !isReported) {
          isReported = true;
          logger.warn({ port }, 'the port is in use; the start waits for it for up to 10 s');
        }
      }
    }
  } catch (error) {
    throw listenFailure('PORT', port, error);
  }
}

async function bind(host: string, port: number, workers: number): Promise<Port> {
  const guard = port === 0 ? undefined : await guardPort(host, port);
  let sockets: readonly BoundSocket[] = [];
  try {
    // Before the attempt to connect, which would wait for a host that is another machine's.
    const bound = bindEach(host, port, workers);
    sockets = bound;
    if (port !== 0) await expectUnused(host, port);
    return {
      number: (bound[0].address() as AddressInfo).port,
      isInherited: false,
      descriptors: sharedByWorkers(
        bound.map((socket) => socket.fd()),
        workers,
      ),
      close() {
        for (const socket of bound) socket.close();
        guard?.close();
      },
    };
  } catch (error) {
    for (const socket of sockets) socket.close();
    guard?.close();
    throw error;
  }
}

/**
 * Detects two gateways that start at the same time, while neither listens on the port yet: only one can bind a name in
 * the abstract namespace of Unix sockets, which like ports belongs to the network namespace. It is released with the
 * process.
 */
async function guardPort(host: string, port: number): Promise<Server | undefined> {
  if (process.platform !== 'linux') return undefined;
  const guard = createServer((socket) => socket.destroy()).listen(`\0signpost gateway ${host} ${port}`);
  await once(guard, 'listening');
  return guard.unref();
}

function bindEach(host: string, port: number, workers: number): [BoundSocket, ...BoundSocket[]] {
  let first: BoundSocket;
  try {
    first = new BoundSocket({ host, port, reusePort: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOTSUP') throw error;
    return [new BoundSocket({ host, port })];
  }
  const { port: number } = first.address() as AddressInfo;
  const others = Array.from(
    { length: SOCKETS_OF_WORKER * workers - 1 },
    () => new BoundSocket({ host, port: number, reusePort: true }),
  );
  return [first, ...others];
}

/** Distributes sockets evenly over workers; with fewer sockets than workers, several accept from one. */
export function sharedByWorkers(descriptors: readonly number[], workers: number): Port['descriptors'] {
  return (worker) => descriptors.filter((_, index) => index % workers === worker % descriptors.length);
}

/**
 * With `reusePort`, another program that uses it too would share the port. Listening to find out would reset clients.
 */
async function expectUnused(host: string, port: number): Promise<void> {
  const socket = connect({ host, port, timeout: CONNECT_MS });
  const failed = once(socket, 'connect').then(
    () => false,
    () => true,
  );
  const isUnused = await Promise.race([failed, once(socket, 'timeout').then(() => false)]);
  socket.destroy();
  if (!isUnused) throw Object.assign(new Error('the port is in use'), { code: 'EADDRINUSE' });
}
