import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { Code, ConnectError } from '@connectrpc/connect';
import { Http2SessionManager } from '@connectrpc/connect-node';

/**
 * Host names are resolved at most this often, in ms, and only while calls are made: a new core is found within a
 * second.
 */
const RESOLVE_MS = 1_000;

/** How long a connection may take to be established, TLS included, in ms. */
const CONNECT_MS = 5_000;

/** The pause before a core is tried again, in ms: doubled with each failure up to the maximum. */
const MIN_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 1_000;

/**
 * A dead machine is detected after 15 s, not after the minutes that TCP takes; on a connection without calls, 5 s after
 * the next call. connect-node 2.2.0 could also ping connections without calls, but then throws from a timer, uncaught,
 * after a server has closed one.
 */
const KEEPALIVE = { pingIntervalMs: 10_000, pingTimeoutMs: 5_000, pingIdleConnection: false };

/** Returns the IP addresses of a host name. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export interface CoreConnectionOptions {
  /** `host:port`, where the host is a name or an IP address. */
  readonly addresses: readonly string[];
  /** PEM, the CA of the servers' certificates; unencrypted if undefined. */
  readonly ca: Buffer | undefined;
  /** By default the system's resolver, which knows `/etc/hosts` and the search domains of Kubernetes. */
  readonly resolve?: Resolve | undefined;
}

/** Connections to all cores, one to each IP address and port. */
export interface CoreConnections {
  /** A connection, round-robin among those that are established; undefined while there is none. */
  connected(): Http2SessionManager | undefined;
  /** The same, but waits for attempts to establish one. Rejects with `unavailable` as soon as all have failed. */
  next(): Promise<Http2SessionManager>;
  /** Closes all of them; pending calls fail. */
  close(): void;
}

/** Manages connections to the cores; it connects with the first call. */
export function connectCores({ addresses, ca, resolve = resolveBySystem }: CoreConnectionOptions): CoreConnections {
  const hosts = addresses.map(parseAddress);
  let cores = new Map<string, Core>();
  let resolved: Promise<void> | undefined;
  let resolvedAt = Number.NEGATIVE_INFINITY;
  /** Why a host name could not be resolved, the last time that happened. */
  let unresolved: unknown;
  let calls = 0;
  let isClosed = false;

  /** Updates `cores`. Keeps those of a host name that can't be resolved. */
  async function resolveAll(): Promise<void> {
    const found = await Promise.all(
      hosts.map(async (host) => {
        try {
          const ips = isIP(host.name) ? [host.name] : await resolve(host.name);
          return ips.map((ip) => ({ ...host, ip }));
        } catch (error) {
          unresolved = error;
          const known = [...cores.values()].map(({ address }) => address);
          return known.filter(({ name, port }) => name === host.name && port === host.port);
        }
      }),
    );
    const previous = cores;
    cores = new Map();
    for (const address of found.flat()) {
      const key = `${address.ip} ${address.port}`;
      // Several names may have the same address.
      const core = cores.get(key) ?? previous.get(key) ?? new Core(address, ca);
      previous.delete(key);
      cores.set(key, core);
      if (isClosed) core.close();
      else if (!core.isConnected) void core.connect();
    }
    for (const core of previous.values()) core.retire();
  }

  /** Resolves the names if that was not done recently. Resolves once they are known for the first time. */
  function refresh(): Promise<void> {
    if (!resolved || performance.now() - resolvedAt > RESOLVE_MS) {
      resolvedAt = performance.now();
      resolved = resolveAll();
    }
    return resolved;
  }

  function connected(): Http2SessionManager | undefined {
    void refresh();
    const usable = [...cores.values()].filter((core) => core.isConnected);
    return usable[calls++ % usable.length]?.session;
  }

  return {
    connected,
    async next() {
      for (;;) {
        const session = connected();
        if (session) return session;
        await refresh();
        const attempts = [...cores.values()].map((unconnected) => unconnected.connect());
        await Promise.any(attempts).catch((failures: AggregateError) => {
          const cause = attempts.length > 0 ? failures : unresolved;
          throw new ConnectError('No core can be reached.', Code.Unavailable, undefined, undefined, cause);
        });
      }
    },
    close() {
      isClosed = true;
      for (const core of cores.values()) core.close();
    },
  };
}

/** One core, or rather one address of one. */
class Core {
  readonly address: ResolvedAddress;
  readonly session: Http2SessionManager;
  #attempt: Promise<void> | undefined;
  #backoffMs = 0;
  #retryAt = 0;

  constructor(address: ResolvedAddress, ca: Buffer | undefined) {
    this.address = address;
    const { name, ip, port } = address;
    const host = ip.includes(':') ? `[${ip}]` : ip;
    this.session = new Http2SessionManager(`${ca ? 'https' : 'http'}://${host}:${port}`, KEEPALIVE, {
      // The bodies in memory are limited elsewhere; above its default of 10 MB, Node would refuse calls.
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
      ...(ca && { ca, ...(isIP(name) ? {} : { servername: name }) }),
    });
  }

  get isConnected(): boolean {
    const state = this.session.state();
    return state === 'open' || state === 'idle';
  }

  /** Rejects if the connection can't be established, or at once if that failed a moment ago. */
  connect(): Promise<void> {
    if (this.#attempt) return this.#attempt;
    if (performance.now() < this.#retryAt) return failed(this.session.error());
    this.#attempt = this.#connect().finally(() => {
      this.#attempt = undefined;
    });
    // Also observed by calls that wait for it, if there are any.
    this.#attempt.catch(() => {});
    return this.#attempt;
  }

  async #connect(): Promise<void> {
    const timer = setTimeout(
      () => this.session.abort(new Error('the connection was not established in time')),
      CONNECT_MS,
    );
    const state = await this.session.connect();
    clearTimeout(timer);
    if (state !== 'error') {
      this.#backoffMs = 0;
      return;
    }
    this.#backoffMs = Math.min(MAX_BACKOFF_MS, this.#backoffMs * 2 || MIN_BACKOFF_MS);
    this.#retryAt = performance.now() + this.#backoffMs;
    throw this.session.error();
  }

  /** Closes the connection once its calls have ended. */
  retire(): void {
    if (this.session.state() === 'open') setTimeout(() => this.retire(), RESOLVE_MS).unref();
    else this.close();
  }

  close(): void {
    this.session.abort();
  }
}

function failed(error: unknown): Promise<never> {
  const rejected = Promise.reject(error);
  rejected.catch(() => {});
  return rejected;
}

interface Address {
  /** A host name or an IP address. */
  readonly name: string;
  readonly port: number;
}

interface ResolvedAddress extends Address {
  readonly ip: string;
}

function parseAddress(address: string): Address {
  const { hostname, port } = new URL(`tcp://${address}`);
  return { name: hostname.replace(/^\[|\]$/g, ''), port: Number(port) };
}

async function resolveBySystem(hostname: string): Promise<readonly string[]> {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address }) => address);
}
