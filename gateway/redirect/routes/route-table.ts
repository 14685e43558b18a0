import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import type { Logger } from 'pino';
import type { Positions } from '../../../common/log/log.ts';
import { throttledReport } from '../../../common/runtime/throttled-report.ts';
import type { HostRoute, Route } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { coalesced } from './coalesced.ts';
import { routeCommits } from './route-commits.ts';
import {
  CODE_KEY,
  type FoundRoute,
  HOST_KEY,
  INCOMPLETE_KEY,
  positionKeys,
  readCode,
  readHost,
  TOPIC_KEY,
} from './route-record.ts';
import { unwrittenRoutes } from './unwritten-routes.ts';
import { openWriterLock } from './writer-lock.ts';

/**
 * The routes of all codes, on the gateway's own disk: it makes scans independent of everything else. The higher version
 * wins, so a late message never undoes a newer change. Any number of processes may open it; LMDB lets one write at a
 * time.
 */
export interface RouteTable {
  /** The route of a short code, as any process last wrote it; undefined if the table does not contain it. */
  code(shortCode: string): FoundRoute | undefined;
  /**
   * The custom domain of this name, also after it was removed (`removed`). `hostname`: in lower case, without a port.
   */
  customDomain(hostname: string): HostRoute | undefined;
  /**
   * Writes a route. Once this resolves the route is visible to scans and survives a kill and a power cut. A failed
   * write is only logged; if the table has an older version, this process serves the new one from memory. `mayWait`:
   * until 5 ms after the previous commit, to share one with other changes that are in progress; a change that may not
   * wait is committed at once, with all that are waiting.
   */
  apply(route: Route, mayWait?: boolean): Promise<void>;
  /** Serves a code from memory until the table has this version or a newer one; `record`: see `codeRecord`. */
  serveUnwritten(shortCode: string, record: Buffer): void;
  /**
   * Writes routes of the topic, in one commit with those of other partitions, and the position reached in one
   * transaction with the last of them, or within `POSITIONS_MS` if the table has all of them already. Rejects if the
   * disk can't be written.
   */
  advance(routes: readonly Route[], reached: Reached): Promise<void>;
  /** The next offset of each partition of the topic, for the process that advances. */
  positions(): Positions;
  /** The topic that those positions belong to: see `Log.identity`; undefined if none was recorded. */
  topic(): string | undefined;
  /**
   * Switches to another topic of the same name, of which nothing has been read. Existing routes stay: versions decide.
   */
  beginTopic(identity: string): Promise<void>;
  /**
   * Whether it has ever contained the whole topic. Until then it may lack custom domains, whose hosts would serve every
   * code.
   */
  isComplete(): boolean;
  /** Notes that it contains the whole topic. */
  markComplete(): Promise<void>;
  close(): Promise<void>;
}

/** A partition of the topic, and the offset from which it is to be read next. */
export interface Reached {
  readonly partition: number;
  readonly next: bigint;
}

/**
 * Routes in one transaction. LMDB copies every page that a transaction touches before it frees the old one: with 10,000
 * routes the file grew to 1.5 times its size with 1,000. And meanwhile all other writers wait.
 */
const ROUTES_PER_COMMIT = 200;

/**
 * After this time, in ms, positions are written that were reached without new routes. A carrier that is killed reads
 * that much of the topic again.
 */
const POSITIONS_MS = 1_000;

/** How often it is logged that routes can't be written, in ms. */
const LOG_MS = 60_000;

/** No hostname or short code is longer. LMDB rejects keys over 1,978 bytes, and clients can send such a host. */
const MAX_KEY_LENGTH = 255;

/**
 * Opens the table in `folder`, which is created if it is missing. `onUnwritten` is called with each code that `apply`
 * could not write although the table has an older version: other processes should serve it from memory too.
 */
export function openRouteTable(
  folder: string,
  logger: Logger,
  onUnwritten: RouteTable['serveUnwritten'] = () => {},
): RouteTable {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const store = open<Buffer, string>({ path: folder, encoding: 'binary', noSubdir: false });
  const lock = openWriterLock(folder, logger);
  const commits = routeCommits(store, join(folder, 'data.mdb'), logger);
  restrictToOwner(folder, logger);
  /** Hosts looked up in this event loop iteration: nearly always the same one. */
  const hosts = new Map<string, HostRoute | undefined>();
  let isFresh = false;
  const unwritten = unwrittenRoutes((shortCode) => read(CODE_KEY + shortCode) !== undefined, onUnwritten);
  /** Positions that are not in the table yet, although all routes before them are. */
  const pendingPositions = new Map<number, bigint>();
  let writingPositions: NodeJS.Timeout | undefined;
  const reportUnwritten = throttledReport(LOG_MS, (_, error: unknown) =>
    logger.error({ err: error }, 'a route could not be written to disk'),
  );
  const apply = coalesced<Route>(async (take) => {
    let routes: Route[] = [];
    const commitNext = () => {
      if (routes.length > 0) commit(routes.slice(0, ROUTES_PER_COMMIT));
      routes = routes.slice(ROUTES_PER_COMMIT);
    };
    try {
      await lock.alone(() => {
        routes = commits.newer(take());
        commitNext();
      }, true);
      while (routes.length > 0) await lock.alone(commitNext, true);
    } catch (error) {
      // The topic delivers them again; the API response to a change must not fail because of it.
      for (const route of routes) unwritten.keep(route);
      reportUnwritten(1, error);
    }
  });
  const advance = coalesced<{ routes: readonly Route[]; reached: Reached }>(async (take) => {
    const batches = take();
    const routes = commits.newer(batches.flatMap((batch) => batch.routes));
    const reached = new Map(batches.map(({ reached: { partition, next } }) => [partition, next]));
    let at = 0;
    for (; routes.length - at > ROUTES_PER_COMMIT; at += ROUTES_PER_COMMIT) {
      await lock.alone(() => commit(routes.slice(at, at + ROUTES_PER_COMMIT)), false);
    }
    if (at < routes.length) return lock.alone(() => commit(routes.slice(at), reached), false);
    for (const [partition, next] of reached) pendingPositions.set(partition, next);
    writingPositions ??= setTimeout(() => {
      writingPositions = undefined;
      // After a failure they are written with later ones, or a part of the topic is read again.
      writePositions().catch(() => undefined);
    }, POSITIONS_MS);
  });

  /**
   * All look-ups of one event loop iteration share the snapshot of the first. Every request that this iteration answers
   * arrived before it, so a client that sends a request after another process confirmed a change sees the change.
   */
  function refresh(): void {
    if (isFresh) return;
    isFresh = true;
    store.resetReadTxn();
    hosts.clear();
    setImmediate(() => {
      isFresh = false;
    });
  }

  /**
   * Decoded routes are not cached: reading one of a million takes 2.5 µs, a cached one would have to be compared with
   * what other processes wrote, and the table's pages are in memory anyway.
   */
  function read(key: string): Buffer | undefined {
    if (key.length > MAX_KEY_LENGTH) return undefined;
    return store.getBinaryFast(key);
  }

  function commit(routes: readonly Route[], reached: Positions = new Map()): void {
    commits.write(routes, new Map([...pendingPositions, ...reached]));
    pendingPositions.clear();
    isFresh = false;
  }

  async function writePositions(): Promise<void> {
    if (pendingPositions.size > 0) await lock.alone(() => commit([]), false);
  }

  return {
    code(shortCode) {
      refresh();
      const written = read(CODE_KEY + shortCode);
      if (!written) return undefined;
      const record = unwritten.newer(shortCode, written);
      return readCode(record, record.length);
    },
    customDomain(hostname) {
      refresh();
      if (hosts.has(hostname)) return hosts.get(hostname);
      const domain = readHost(read(HOST_KEY + hostname));
      hosts.set(hostname, domain);
      return domain;
    },
    apply,
    serveUnwritten: unwritten.serve,
    advance: (routes, reached) => advance({ routes, reached }, true),
    positions() {
      const entries = store.getRange(positionKeys());
      const written = entries.map(({ key, value }) => [Number(key.slice(1)), BigInt(value.toString())] as const);
      return new Map([...written, ...pendingPositions]);
    },
    topic: () => store.get(TOPIC_KEY)?.toString(),
    async beginTopic(identity) {
      await lock.alone(() => {
        pendingPositions.clear();
        commits.beginTopic(identity);
      }, false);
    },
    isComplete() {
      refresh();
      return store.get(TOPIC_KEY) !== undefined && store.get(INCOMPLETE_KEY) === undefined;
    },
    async markComplete() {
      await lock.alone(() => commits.markComplete(), false);
    },
    async close() {
      clearTimeout(writingPositions);
      await writePositions().catch(() => undefined);
      await store.close();
      lock.close();
      commits.close();
    },
  };
}

/** LMDB creates world-readable files, and these contain the targets and landing pages of all accounts. */
function restrictToOwner(folder: string, logger: Logger): void {
  try {
    chmodSync(folder, 0o700);
    for (const file of ['data.mdb', 'lock.mdb']) chmodSync(join(folder, file), 0o600);
  } catch (error) {
    // A file system without modes, or another owner, must not stop redirects.
    logger.warn({ err: error }, 'the route table can’t be protected from other users of this machine');
  }
}
