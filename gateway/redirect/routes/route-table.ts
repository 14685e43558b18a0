import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { open } from 'lmdb';
import type { Logger } from 'pino';
import type { Positions } from '../../../common/log/log.ts';
import { throttledReport } from '../../../common/runtime/throttled-report.ts';
import {
  type CodeRoute,
  type HostRoute,
  HostRouteSchema,
  type Route,
} from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { ReservedSpace } from './reserved-space.ts';
import { codeRecord, type FoundRoute, readCode, versionIn } from './route-record.ts';
import { collected } from './shared-commits.ts';
import { openWriterLock } from './writer-lock.ts';

/**
 * The routes of all codes, on the gateway's own disk: it makes scans independent of everything else. The higher version
 * wins, so a late message never undoes a newer change. Any number of processes may open it; LMDB lets one write at a time.
 */
export interface RouteTable {
  /** The route of a short code, as any process last wrote it; undefined if the table does not contain it. */
  code(shortCode: string): FoundRoute | undefined;
  /** The custom domain of this name, also after it was removed (`removed`). `hostname`: in lower case, without a port. */
  customDomain(hostname: string): HostRoute | undefined;
  /**
   * Writes a route. Once this resolves the route is visible to scans and survives a kill and a power cut. A failed write is
   * only logged. `mayWait`: until 5 ms after the previous commit, to share one with other changes that are in
   * progress; a change that may not wait is committed at once, with all that are waiting.
   */
  apply(route: Route, mayWait?: boolean): Promise<void>;
  /**
   * Writes routes of the topic, in one commit with those of other partitions, and the position reached in one transaction
   * with the last of them, or within `POSITIONS_MS` if the table has all of them already. Rejects if the disk can't be
   * written.
   */
  advance(routes: readonly Route[], reached: Reached): Promise<void>;
  /** The next offset of each partition of the topic, for the process that advances. */
  positions(): Positions;
  /** The topic that those positions belong to: see `Log.identity`; undefined if none was recorded. */
  topic(): string | undefined;
  /** Switches to another topic of the same name, of which nothing has been read. Existing routes stay: versions decide. */
  beginTopic(identity: string): Promise<void>;
  close(): Promise<void>;
}

/** A partition of the topic, and the offset from which it is to be read next. */
export interface Reached {
  readonly partition: number;
  readonly next: bigint;
}

/** Key prefixes of codes, hosts and positions. */
const [CODE, HOST, POSITION] = ['c', 'h', 'p'];
/** The key of the topic's identity. */
const TOPIC = 't';

/**
 * Routes in one transaction. LMDB copies every page that a transaction touches before it frees the old one: with 10,000
 * routes the file grew to 1.5 times its size with 1,000. And meanwhile all other writers wait.
 */
const ROUTES_PER_COMMIT = 200;

/**
 * The codes of the two errors (MDB_NOTFOUND, MDB_BAD_VALSIZE) with which lmdb undoes a transaction because it fails to
 * read the list of free pages: once in 500 to 2,000 transactions while two processes write without a pause. Others met
 * them too: https://github.com/HarperFast/harper/issues/686.
 */
const FREE_LIST_ERRORS: ReadonlySet<unknown> = new Set([-30_798, -30_781]);

/** How often a transaction is tried that fails with one of them. */
const MAX_ATTEMPTS = 10;

/**
 * After this time, in ms, positions are written that were reached without new routes. A carrier that is killed reads that
 * much of the topic again.
 */
const POSITIONS_MS = 1_000;

/**
 * The most that a transaction adds to the file, in bytes: for each route, copies of the pages from the root to its leaf and
 * one that a split adds, and for all of them the lists of pages that become free.
 */
const BYTES_PER_ROUTE = 6 * 4_096;
const BYTES_PER_COMMIT = 256 * 1_024;

/** How often it is logged that routes can't be written, in ms. */
const LOG_MS = 60_000;

/** No hostname or short code is longer. LMDB rejects keys over 1,978 bytes, and clients can send such a host. */
const MAX_KEY_LENGTH = 255;

/** Opens the table in `folder`, which is created if it is missing. */
export function openRouteTable(folder: string, logger: Logger): RouteTable {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const store = open<Buffer, string>({ path: folder, encoding: 'binary', noSubdir: false });
  const lock = openWriterLock(folder, logger);
  const space = new ReservedSpace(join(folder, 'data.mdb'));
  restrictToOwner(folder, logger);
  /** Hosts looked up in this event loop iteration: nearly always the same one. */
  const hosts = new Map<string, HostRoute | undefined>();
  let isFresh = false;
  const reportUnwritten = throttledReport(LOG_MS, (_, error: unknown) =>
    logger.error({ err: error }, 'a route could not be written to disk'),
  );
  const apply = collected<Route>(async (take) => {
    try {
      await lock.alone(() => {
        const routes = newer(take());
        if (routes.length > 0) commit(routes);
      }, true);
    } catch (error) {
      // The topic delivers them again; the API response to a change must not fail because of it.
      reportUnwritten(1, error);
    }
  });
  const advance = collected<{ routes: readonly Route[]; reached: Reached }>(async (take) => {
    const batches = take();
    const routes = newer(batches.flatMap((batch) => batch.routes));
    const reached = batches.map((batch) => [batch.reached.partition, batch.reached.next] as const);
    let at = 0;
    for (; routes.length - at > ROUTES_PER_COMMIT; at += ROUTES_PER_COMMIT) {
      await lock.alone(() => commit(routes.slice(at, at + ROUTES_PER_COMMIT)), false);
    }
    if (at < routes.length) return lock.alone(() => commit(routes.slice(at), reached), false);
    for (const [partition, next] of reached) unwritten.set(partition, next);
    writingPositions ??= setTimeout(() => {
      writingPositions = undefined;
      // After a failure they are written with later ones, or a part of the topic is read again.
      writePositions().catch(() => undefined);
    }, POSITIONS_MS);
  });
  /** Positions that are not in the table yet, although all routes before them are. */
  const unwritten = new Map<number, bigint>();
  let writingPositions: NodeJS.Timeout | undefined;

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

  /**
   * A commit took 0.2 ms on the disk measured, and several ms under contention. It is synchronous, before the answer: a
   * gateway that is killed right after an answer still has the route. LMDB's asynchronous commits are no alternative:
   * after one that failed on a full disk, every later one hangs for ever.
   */
  function commit(routes: readonly Route[], reached: Iterable<readonly [number, bigint]> = []): void {
    const entries = routes.map(entryOf);
    reserve(entries.reduce((sum, { record }) => sum + BYTES_PER_ROUTE + 2 * (record?.length ?? 0), 0));
    transact(() => {
      for (const { key, record, version } of entries) {
        if (!record) logger.error({ key }, 'a route that can’t be answered was skipped');
        if (!record || isUpToDate(key, version)) continue;
        store.putSync(key, record);
      }
      for (const [partition, next] of [...unwritten, ...reached]) {
        store.putSync(POSITION + partition, Buffer.from(String(next)));
      }
    });
    unwritten.clear();
    isFresh = false;
  }

  /** Runs a transaction, which has to be repeatable. */
  function transact(write: () => void): void {
    for (let attempt = 1; ; attempt++) {
      try {
        store.transactionSync(write);
        return;
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !FREE_LIST_ERRORS.has((error as { code?: unknown }).code)) throw error;
      }
    }
  }

  /** The routes that the table lacks: most arrive twice, with the answer to the change and in the topic. */
  function newer(routes: readonly Route[]): Route[] {
    store.resetReadTxn();
    return routes.filter((route) => !isUpToDate(keyOf(route), route.version));
  }

  async function writePositions(): Promise<void> {
    if (unwritten.size > 0) await lock.alone(() => commit([]), false);
  }

  /** Call it before each transaction; `bytes`: what its entries may add to the file. */
  function reserve(bytes: number): void {
    const { lastPageNumber, pageSize } = store.getStats() as { lastPageNumber: number; pageSize: number };
    space.ensure((lastPageNumber + 1) * pageSize + bytes + BYTES_PER_COMMIT);
  }

  function isUpToDate(key: string, version: bigint): boolean {
    const existing = store.getBinaryFast(key);
    return existing !== undefined && versionIn(existing) >= version;
  }

  return {
    code(shortCode) {
      refresh();
      const record = read(CODE + shortCode);
      return record && readCode(record, record.length);
    },
    customDomain(hostname) {
      refresh();
      if (hosts.has(hostname)) return hosts.get(hostname);
      const domain = readHost(read(HOST + hostname));
      hosts.set(hostname, domain);
      return domain;
    },
    apply,
    advance: (routes, reached) => advance({ routes, reached }, true),
    positions() {
      const entries = store.getRange({ start: POSITION, end: `${POSITION}~` });
      const written = entries.map(({ key, value }) => [Number(key.slice(1)), BigInt(value.toString())] as const);
      return new Map([...written, ...unwritten]);
    },
    topic: () => store.get(TOPIC)?.toString(),
    async beginTopic(identity) {
      await lock.alone(() => {
        unwritten.clear();
        reserve(Buffer.byteLength(identity));
        transact(() => {
          for (const key of [...store.getKeys({ start: POSITION, end: `${POSITION}~` })]) store.removeSync(key);
          store.putSync(TOPIC, Buffer.from(identity));
        });
      }, false);
    },
    async close() {
      clearTimeout(writingPositions);
      await writePositions().catch(() => undefined);
      await store.close();
      lock.close();
      space.close();
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

/** A host in the route table: version (8 bytes), and its `HostRoute` message from the topic. */
function hostRecord(version: bigint, host: HostRoute): Buffer {
  const record = Buffer.alloc(8);
  record.writeBigUInt64BE(version);
  return Buffer.concat([record, toBinary(HostRouteSchema, host)]);
}

function readHost(record: Buffer | undefined): HostRoute | undefined {
  if (!record) return undefined;
  return fromBinary(HostRouteSchema, Buffer.from(record.subarray(8, record.length)));
}

interface Entry {
  readonly key: string;
  readonly version: bigint;
  /** Undefined for a route that can't be answered. */
  readonly record: Buffer | undefined;
}

function entryOf(route: Route): Entry {
  const { version, entry } = route;
  const record =
    entry.case === 'host' ? hostRecord(version, entry.value) : codeRecord(version, entry.value as CodeRoute);
  return { key: keyOf(route), version, record };
}

function keyOf({ entry }: Route): string {
  if (entry.case === 'code') return CODE + entry.value.shortCode;
  if (entry.case === 'host') return HOST + entry.value.hostname;
  throw new TypeError('a route of an unknown kind');
}
