import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { LOOPBACK } from '../../local/free-port.ts';

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
  /**
   * Resets the client's ends that `vanish` left open: what the other machine answers to whatever they send, or what the
   * client's system does when it gives them up.
   */
  giveUp(): void;
  /** Forwards everything with a delay in ms, including the ends of connections. */
  delay(ms: number): void;
  /** Forwards everything again, starting with what was held back. */
  restore(): void;
  /** Closes the proxy with all its connections. */
  close(): void;
}

/** A proxy for the server that a URL names. `port`: where it listens; by default the system chooses. */
export async function openTcpProxy(target: string, listenOn = 0): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const servers = new Set<Socket>();
  const vanished = new WeakSet<Socket>();
  const left = new Set<Socket>();
  let state: 'open' | 'cut' | 'hanging' = 'open';
  let delayMs = 0;
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
      const later = inOrder(() => delayMs);
      from.on('data', (chunk) => later(() => to.write(chunk)));
      from.on('error', () => from.destroy());
      from.on('close', () => {
        sockets.delete(from);
        if (!vanished.has(from)) later(() => to.destroy());
      });
      if (state === 'hanging') from.pause();
    }
  });
  server.listen(listenOn, LOOPBACK);
  await once(server, 'listening');
  const forAll = (next: typeof state, each: (socket: Socket) => void) => () => {
    state = next;
    for (const socket of sockets) each(socket);
  };
  const cut = forAll('cut', (socket) => socket.destroy());
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
      for (const socket of sockets) if (!servers.has(socket)) left.add(socket);
    },
    giveUp() {
      for (const socket of left) socket.resetAndDestroy();
      left.clear();
    },
    delay(ms) {
      delayMs = ms;
    },
    hang: forAll('hanging', (socket) => socket.pause()),
    restore: forAll('open', (socket) => socket.resume()),
    close() {
      cut();
      server.close();
    },
  };
}

/** Runs functions some ms later each, and none before one that came earlier, also when the delay has shrunk. */
function inOrder(delayMs: () => number): (carry: () => void) => void {
  const waiting: { readonly due: number; carry(): void }[] = [];
  const runDue = () => {
    while (waiting[0] && waiting[0].due <= performance.now()) waiting.shift()?.carry();
    if (waiting[0]) setTimeout(runDue, Math.max(0, waiting[0].due - performance.now())).unref();
  };
  return (carry) => {
    const delay = delayMs();
    if (waiting.length === 0 && delay === 0) return carry();
    waiting.push({ due: performance.now() + delay, carry });
    if (waiting.length === 1) setTimeout(runDue, delay).unref();
  };
}
