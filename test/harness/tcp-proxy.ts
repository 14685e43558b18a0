import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { LOOPBACK } from '../../local/free-port.ts';
import { afterFile } from './after-file.ts';

/** A proxy that simulates failures of networks and machines. */
export interface TcpProxy {
  /** The server's address with the proxy's host and port in it. */
  readonly url: string;
  /** Closes all connections and rejects new ones. */
  cut(): void;
  /** Keeps all connections and accepts new ones, but forwards nothing. */
  hang(): void;
  /**
   * Simulates that another machine takes over the server's address: the server's ends of all connections are closed,
   * the client's ends stay open and receive nothing, and new connections are forwarded.
   */
  vanish(): void;
  /** Forwards everything with a delay in ms, including the ends of connections. */
  delay(ms: number): void;
  /** Forwards everything again, starting with what was held back. */
  restore(): void;
}

/** Starts a proxy for the server of a URL; it is stopped after the calling file's tests. */
export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const servers = new Set<Socket>();
  const vanished = new WeakSet<Socket>();
  let state: 'open' | 'cut' | 'hanging' = 'open';
  let delayMs = 0;
  /** Keeps the order of calls as long as the delay is never reduced. */
  const later = (forward: () => void) => {
    if (delayMs === 0) forward();
    else setTimeout(forward, delayMs).unref();
  };
  const server = createServer((incoming) => {
    if (state === 'cut') {
      incoming.destroy();
      return;
    }
    const outgoing = connect(Number(port), hostname);
    servers.add(outgoing);
    outgoing.on('close', () => servers.delete(outgoing));
    const both = [incoming, outgoing] as const;
    for (const [from, to] of [both, [outgoing, incoming] as const]) {
      sockets.add(from);
      from.on('data', (chunk) => later(() => to.write(chunk)));
      from.on('error', () => from.destroy());
      from.on('close', () => {
        sockets.delete(from);
        if (!vanished.has(from)) later(() => to.destroy());
      });
      if (state === 'hanging') from.pause();
    }
  });
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  const forAll = (next: typeof state, each: (socket: Socket) => void) => () => {
    state = next;
    for (const socket of sockets) each(socket);
  };
  const cut = forAll('cut', (socket) => socket.destroy());
  afterFile(async () => {
    cut();
    server.close();
  });
  const url = new URL(target);
  url.hostname = LOOPBACK;
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    cut,
    vanish() {
      for (const socket of sockets) socket.pause();
      for (const socket of servers) {
        vanished.add(socket);
        socket.destroy();
      }
    },
    delay(ms) {
      delayMs = ms;
    },
    hang: forAll('hanging', (socket) => socket.pause()),
    restore: forAll('open', (socket) => socket.resume()),
  };
}
