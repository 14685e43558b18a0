import type { Database } from 'lmdb';
import type { Logger } from 'pino';
import type { Positions } from '../../../common/log/log.ts';
import type { CodeRoute, Route } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { ReservedSpace } from './reserved-space.ts';
import {
  CODE_KEY,
  codeRecord,
  HOST_KEY,
  hostRecord,
  INCOMPLETE_KEY,
  POSITION_KEY,
  positionKeys,
  TOPIC_KEY,
  versionIn,
} from './route-record.ts';

/**
 * The codes of the two errors (MDB_NOTFOUND, MDB_BAD_VALSIZE) with which lmdb undoes a transaction because it fails to
 * read the list of free pages: once in 500 to 2,000 transactions while two processes write without a pause. Others met
 * them too: https://github.com/HarperFast/harper/issues/686.
 */
const FREE_LIST_ERRORS: ReadonlySet<unknown> = new Set([-30_798, -30_781]);

/** Maximum attempts of a transaction that fails with one of them. */
const MAX_ATTEMPTS = 10;

/**
 * The most that a transaction adds to the file, in bytes: for each route, copies of the pages from the root to its leaf
 * and one that a split adds, and for all of them the lists of pages that become free.
 */
const BYTES_PER_ROUTE = 6 * 4_096;
const BYTES_PER_COMMIT = 256 * 1_024;

/** Writes to the route table. Call each method only while holding the writer lock. */
export interface RouteCommits {
  /** Writes those of the routes that are newer than the table's, and positions, in one transaction. */
  write(routes: readonly Route[], positions: Positions): void;
  /** Removes the positions and writes the identity of the topic that the following ones belong to. */
  beginTopic(identity: string): void;
  /** Notes that the table contains the whole topic. */
  markComplete(): void;
  /** The routes that the table lacks: most arrive twice, with the answer to the change and in the topic. */
  newer(routes: readonly Route[]): Route[];
  close(): void;
}

/**
 * A commit took 0.2 ms on the disk measured, and several ms under contention. It is synchronous, before the answer: a
 * gateway that is killed right after an answer still has the route. LMDB's asynchronous commits are no alternative:
 * after one that failed on a full disk, every later one hangs for ever. `file`: the store's.
 */
export function routeCommits(store: Database<Buffer, string>, file: string, logger: Logger): RouteCommits {
  const space = new ReservedSpace(file);

  function isUpToDate(key: string, version: bigint): boolean {
    const existing = store.getBinaryFast(key);
    return existing !== undefined && versionIn(existing) >= version;
  }

  /** Call it before each transaction; `bytes`: what its entries may add to the file. */
  function reserve(bytes: number): void {
    const { lastPageNumber, pageSize } = store.getStats() as { lastPageNumber: number; pageSize: number };
    space.ensure((lastPageNumber + 1) * pageSize + bytes + BYTES_PER_COMMIT);
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

  return {
    write(routes, positions) {
      const entries = routes.map(entryOf);
      reserve(entries.reduce((sum, { record }) => sum + BYTES_PER_ROUTE + 2 * (record?.length ?? 0), 0));
      transact(() => {
        for (const { key, record, version } of entries) {
          if (!record) logger.error({ key }, 'a route that can’t be answered was skipped');
          if (!record || isUpToDate(key, version)) continue;
          store.putSync(key, record);
        }
        for (const [partition, next] of positions) store.putSync(POSITION_KEY + partition, Buffer.from(String(next)));
      });
    },
    beginTopic(identity) {
      reserve(Buffer.byteLength(identity));
      transact(() => {
        for (const key of [...store.getKeys(positionKeys())]) store.removeSync(key);
        if (store.get(TOPIC_KEY) === undefined) store.putSync(INCOMPLETE_KEY, Buffer.from('1'));
        store.putSync(TOPIC_KEY, Buffer.from(identity));
      });
    },
    markComplete() {
      reserve(0);
      transact(() => void store.removeSync(INCOMPLETE_KEY));
    },
    newer(routes) {
      store.resetReadTxn();
      return routes.filter((route) => !isUpToDate(keyOf(route), route.version));
    },
    close: () => space.close(),
  };
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
  if (entry.case === 'code') return CODE_KEY + entry.value.shortCode;
  if (entry.case === 'host') return HOST_KEY + entry.value.hostname;
  throw new TypeError('a route of an unknown kind');
}
