import type { RestClient } from '../rest-client.ts';
import type { Redirects } from '../wrk.ts';

/** How many links an account has, and among how many redirects are drawn. */
export const LINKS = 100_000;

/**
 * A product that shortens links, running, with `LINKS` of them. It is started with its production settings and its
 * limits on requests lifted by its own settings.
 */
export interface Peer {
  readonly name: string;
  /** Its API. */
  readonly api: Server;
  /** Whether Postgres works for it. */
  readonly usesPostgres: boolean;
  /** Creates the n-th link; rejects if the answer is not that it was created. */
  create(n: number, client: RestClient): Promise<unknown>;
  /** Lists the newest 25 links; rejects if the answer is no list. */
  list(n: number, client: RestClient): Promise<unknown>;
  /** The links of such a list. */
  listed(): Promise<readonly unknown[]>;
  /** How many requests a round of creates or lists may have at most. */
  readonly maxRequests: number;
  /** Runs before each round of creates or lists, off the clock. */
  beforeRound(): Promise<void>;
  /** Resolves when the work that creates leave for later is done. */
  settled(): Promise<void>;
  /** The number of links. */
  links(): Promise<number>;
  readonly redirects: Redirects & {
    /** The target of each code: `LINKS` of them, in random order. */
    readonly targets: ReadonlyMap<string, string>;
    /** What answers them, by name: one server, or the same with different settings. */
    readonly servers: ReadonlyMap<string, Server>;
    /** How many it has counted so far. */
    recorded(): Promise<number>;
  };
}

/** What answers requests, and the processes that work for it. */
export interface Server {
  readonly port: number;
  /** The process that answers; its children count with it. */
  readonly pid: number;
  /** Processes behind it, besides Postgres. */
  readonly behind: readonly number[];
}

/** What a peer is started with. */
export interface PeerOptions {
  /** Its own folder. */
  readonly folder: string;
  /** The Postgres of the benchmark, as a user that may create databases. */
  readonly databaseUrl: string;
  /** Stops what it has started. */
  readonly running: AsyncDisposableStack;
}

/**
 * Targets begin with this. Kutt looks up the host of each target before it creates a link; an address (of those
 * reserved for documentation, RFC 5737) needs no DNS, so that no network is measured.
 */
export const TARGET = 'http://192.0.2.10/menu?table=';

/** What phones send as `Host`; peers that tell domains apart are told that it is their own. */
export const HOST = 'signpost.example';

/** Sends a request and rejects unless it is answered with `status`. */
export async function expectStatus(client: RestClient, request: string, status: number): Promise<void> {
  const answered = await client.send(request);
  if (answered !== status) throw new Error(`${request.split('\r\n', 1)} answered ${answered}`);
}
