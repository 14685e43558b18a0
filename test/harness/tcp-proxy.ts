import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { LOOPBACK } from '../../local/free-port.ts';
import { afterFile } from './after-file.ts';

/** Stands between a client and a server, and does to their connections what networks and dying machines do. */
export interface TcpProxy {
  /** The server's address with the proxy's host and port in it. */
  readonly url: string;
  /** Ends all connections and lets no new one come about. */
  cut(): void;
  /** Keeps all connections, takes new ones, and carries nothing any more. */
  hang(): void;
  /**
   * The server's machine vanishes and another one takes its place: the server's ends of all connections are gone, the
   * client's ends stay and hear nothing, and new connections are carried.
   */
  vanish(): void;
  /** Carries everything so many ms later than it comes, ends of connections too. */
  delay(ms: number): void;
  /** Carries everything again, what it kept back first. */
  mend(): void;
}

/** A proxy for the server that a URL names; it stops after the calling file's tests. */
export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const servers = new Set<Socket>();
  const vanished = new WeakSet<Socket>();
  let state: 'open' | 'cut' | 'hanging' = 'open';
  let delayMs = 0;
  /** In the order in which it is called, as long as the delay never shrinks. */
  const later = (carry: () => void) => {
    if (delayMs === 0) carry();
    else setTimeout(carry, delayMs).unref();
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
    mend: forAll('open', (socket) => socket.resume()),
  };
}
