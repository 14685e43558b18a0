import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { open } from 'lmdb';
import type { Logger } from 'pino';
import type { Positions } from '../../../common/log/log.ts';
import { type HostRoute, HostRouteSchema, type Route } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { type FileLock, openFileLock } from '../../process/data-dir-lock.ts';
import { ReservedSpace } from './reserved-space.ts';
import { codeRecord, type FoundRoute, readCode, versionIn } from './route-record.ts';

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
   * Writes a route, in one commit with all others of this event loop iteration. Once this resolves the route is visible to
   * scans and survives a kill. A failed write is only logged.
   */
  apply(route: Route): Promise<void>;
  /**
   * Writes routes of the topic and, in one transaction with the last of them, the position reached. Rejects if the disk
   * can't be written.
   */
  advance(routes: readonly Route[], reached: Reached): Promise<void>;
  /** The next offset of each partition of the topic. */
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
 * The pause after each transaction, in ms: without it, a waiting writer would find the lock taken again and again. While
 * 50,000 routes were written in 0.9 s, a write of another process took 1.9 ms, and 4.6 ms at the 90th percentile.
 */
const PAUSE_MS = 1;

const NO_LOCK: Disposable = { [Symbol.dispose]: () => undefined };

/** How often a writer tries to take the lock that another process holds, in ms. */
const WRITER_MS = 1;

/**
 * The most that a transaction adds to the file, in bytes: for each route, copies of the pages from the root to its leaf and
 * one that a split adds, and for all of them the lists of pages that become free.
 */
const BYTES_PER_ROUTE = 6 * 4_096;
const BYTES_PER_COMMIT = 256 * 1_024;

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
  /** The routes of the next commit, and a promise for it until it begins. */
  const pending: Route[] = [];
  let nextCommit: Promise<void> | undefined;

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
  function commit(routes: readonly Route[], reached?: Reached): void {
    const entries = routes.map(entryOf);
    reserve(entries.reduce((sum, { record }) => sum + BYTES_PER_ROUTE + 2 * (record?.length ?? 0), 0));
    store.transactionSync(() => {
      for (const { key, record, version } of entries) {
        if (!record) logger.error({ key }, 'a route that can’t be answered was skipped');
        if (!record || isUpToDate(key, version)) continue;
        store.putSync(key, record);
      }
      if (reached) store.putSync(POSITION + reached.partition, Buffer.from(String(reached.next)));
    });
    isFresh = false;
  }

  /** Call it before each transaction; `bytes`: what its entries may add to the file. */
  function reserve(bytes: number): void {
    const { lastPageNumber, pageSize } = store.getStats() as { lastPageNumber: number; pageSize: number };
    space.ensure((lastPageNumber + 1) * pageSize + bytes + BYTES_PER_COMMIT);
  }

  /** Without a usable lock file writers wait for each other in LMDB. */
  function takeLock(): Disposable | undefined {
    try {
      return lock ? lock.take() : NO_LOCK;
    } catch {
      return NO_LOCK;
    }
  }

  /**
   * Runs a transaction once no other process is in one. LMDB's own lock makes a writer wait with its whole event loop: a
   * process that is suspended in the middle of a transaction, for up to 15 s until it is killed, then kept every worker
   * with a route to write from answering scans.
   */
  async function alone(write: () => void): Promise<void> {
    for (;;) {
      using taken = takeLock();
      if (taken) return write();
      await sleep(WRITER_MS);
    }
  }

  async function applyPending(): Promise<void> {
    await nextTurn();
    try {
      await alone(() => {
        nextCommit = undefined;
        commit(pending.splice(0));
      });
    } catch (error) {
      // The topic delivers them again; the API response to a change must not fail because of it.
      logger.error({ err: error }, 'a route could not be written to disk');
    }
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
    apply(route) {
      nextCommit ??= applyPending();
      pending.push(route);
      return nextCommit;
    },
    async advance(routes, reached) {
      let at = 0;
      for (; routes.length - at > ROUTES_PER_COMMIT; at += ROUTES_PER_COMMIT) {
        await alone(() => commit(routes.slice(at, at + ROUTES_PER_COMMIT)));
        await sleep(PAUSE_MS);
      }
      await alone(() => commit(routes.slice(at), reached));
    },
    positions() {
      const entries = store.getRange({ start: POSITION, end: `${POSITION}~` });
      return new Map([...entries].map(({ key, value }) => [Number(key.slice(1)), BigInt(value.toString())]));
    },
    topic: () => store.get(TOPIC)?.toString(),
    async beginTopic(identity) {
      await alone(() => {
        reserve(Buffer.byteLength(identity));
        store.transactionSync(() => {
          for (const key of [...store.getKeys({ start: POSITION, end: `${POSITION}~` })]) store.removeSync(key);
          store.putSync(TOPIC, Buffer.from(identity));
        });
      });
    },
    async close() {
      await store.close();
      lock?.close();
      space.close();
    },
  };
}

function openWriterLock(folder: string, logger: Logger): FileLock | undefined {
  try {
    return openFileLock(join(folder, 'writer.lock'));
  } catch (error) {
    // A disk that can't be written must not stop redirects.
    logger.error(
      { err: error },
      'the lock of the route table can’t be opened: its writers wait for each other in LMDB',
    );
    return undefined;
  }
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

function entryOf({ version, entry }: Route): Entry {
  if (entry.case === 'code') {
    return { key: CODE + entry.value.shortCode, version, record: codeRecord(version, entry.value) };
  }
  if (entry.case === 'host') {
    return { key: HOST + entry.value.hostname, version, record: hostRecord(version, entry.value) };
  }
  throw new TypeError('a route of an unknown kind');
}
