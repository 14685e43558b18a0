import { mkdirSync } from 'node:fs';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { open } from 'lmdb';
import type { Logger } from 'pino';
import { type CodeRoute, type Route, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import type { Positions } from '../../src/events/log/log.ts';

/**
 * Where codes lead, on the gateway's own disk: what makes a scan independent of everything else. Versions decide, so a
 * late message never undoes a newer change.
 */
export interface RouteTable {
  /** The route of a short code; undefined when the table does not know it. */
  code(shortCode: string): CodeRoute | undefined;
  /** Whether a host is a custom domain that serves. `hostname`: lower case, without a port. */
  isCustomDomain(hostname: string): boolean;
  /** Takes one route over. Scans see it when this returns; the disk follows. */
  apply(route: Route): void;
  /** Takes routes of the topic over and, in the same transaction, how far it was followed. Resolves when committed. */
  advance(routes: readonly Route[], reached: Reached): Promise<void>;
  /** How far the topic has been followed. */
  positions(): Positions;
  close(): Promise<void>;
}

/** A partition of the topic, and the offset that it goes on from. */
export interface Reached {
  readonly partition: number;
  readonly next: bigint;
}

/** Decoded routes that are kept in memory; when there are more, they are decoded again. */
const CACHED = 50_000;

/** Longer than any hostname or short code; LMDB takes no keys over 1,978 bytes, and anybody may send such a host. */
const MOST_NAME = 255;

/** Opens the table in `folder`, which is made if it is missing. Only one process may use it at a time. */
export function openRouteTable(folder: string, logger: Logger): RouteTable {
  mkdirSync(folder, { recursive: true });
  const store = open<Buffer, string>({ path: folder, encoding: 'binary', noSubdir: false });
  const cache = new Map<string, Route>();
  /** Taken over and not committed yet. Nobody waits for the disk: not a scan, not the answer to the change. */
  const uncommitted = new Map<string, Route>();

  function read(key: string): Route | undefined {
    const known = uncommitted.get(key) ?? cache.get(key);
    if (known || key.length > MOST_NAME) return known;
    const bytes = store.get(key);
    if (!bytes) return undefined;
    const route = fromBinary(RouteSchema, bytes);
    if (cache.size >= CACHED) cache.clear();
    cache.set(key, route);
    return route;
  }

  async function takeOver(routes: readonly Route[], reached?: Reached): Promise<void> {
    const taken = routes.filter((route) => {
      const key = keyOf(route);
      // An equal version is taken again: its first transaction may have failed.
      if ((read(key)?.version ?? 0n) > route.version) return false;
      uncommitted.set(key, route);
      cache.delete(key);
      return true;
    });
    // Transactions run in the order in which they were asked for, so the newest version is written last.
    await store.transaction(() => {
      for (const route of taken) store.putSync(keyOf(route), Buffer.from(toBinary(RouteSchema, route)));
      if (reached) store.putSync(`reached:${reached.partition}`, Buffer.from(String(reached.next)));
    });
    store.resetReadTxn();
    for (const route of taken) {
      const key = keyOf(route);
      if (uncommitted.get(key) === route) uncommitted.delete(key);
    }
  }

  return {
    code(shortCode) {
      const route = read(`code:${shortCode}`);
      return route?.entry.case === 'code' ? route.entry.value : undefined;
    },
    isCustomDomain(hostname) {
      const route = read(`host:${hostname}`);
      return route?.entry.case === 'host' && !route.entry.value.removed;
    },
    apply(route) {
      // The topic brings it again, should the disk take nothing now.
      takeOver([route]).catch((error: unknown) => logger.error({ err: error }, 'a route could not be written to disk'));
    },
    advance: takeOver,
    positions() {
      const kept = store.getRange({ start: 'reached:', end: 'reached;' });
      return new Map(
        [...kept].map(({ key, value }) => [Number(key.slice('reached:'.length)), BigInt(value.toString())]),
      );
    },
    async close() {
      // Comes after all transactions that were asked for; the store would drop them.
      await store.transaction(() => undefined);
      await store.close();
    },
  };
}

function keyOf({ entry }: Route): string {
  if (entry.case === 'code') return `code:${entry.value.shortCode}`;
  if (entry.case === 'host') return `host:${entry.value.hostname}`;
  throw new TypeError('a route stands for nothing that this gateway knows');
}
