import { mkdirSync } from 'node:fs';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { open } from 'lmdb';
import type { Logger } from 'pino';
import {
  type CodeRoute,
  type HostRoute,
  type Route,
  RouteSchema,
} from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import type { Positions } from '../../src/events/log/log.ts';

/**
 * Where codes lead, on the gateway's own disk: what makes a scan independent of everything else. Versions decide, so a
 * late message never undoes a newer change.
 */
export interface RouteTable {
  /** The route of a short code; undefined when the table does not know it. */
  code(shortCode: string): CodeRoute | undefined;
  /** The custom domain that a host is; undefined for any other. `hostname`: lower case, without a port. */
  customDomain(hostname: string): HostRoute | undefined;
  /** Takes one route over: scans see it when this returns, and after a kill. A disk that takes nothing is logged. */
  apply(route: Route): void;
  /** Takes routes of the topic over and, in the same transaction, how far it was followed. Throws when the disk takes nothing. */
  advance(routes: readonly Route[], reached: Reached): void;
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

  function read(key: string): Route | undefined {
    const known = cache.get(key);
    if (known || key.length > MOST_NAME) return known;
    const bytes = store.get(key);
    if (!bytes) return undefined;
    const route = fromBinary(RouteSchema, bytes);
    if (cache.size >= CACHED) cache.clear();
    cache.set(key, route);
    return route;
  }

  /** One commit on this disk took 0.2 ms. It is not put off: a gateway that is killed right after an answer knows it. */
  function takeOver(routes: readonly Route[], reached?: Reached): void {
    try {
      store.transactionSync(() => {
        for (const route of routes) {
          const key = keyOf(route);
          if ((read(key)?.version ?? 0n) >= route.version) continue;
          store.putSync(key, Buffer.from(toBinary(RouteSchema, route)));
          cache.delete(key);
        }
        if (reached) store.putSync(`reached:${reached.partition}`, Buffer.from(String(reached.next)));
      });
    } catch (error) {
      // It may hold what was read of the transaction that is undone.
      cache.clear();
      throw error;
    }
  }

  return {
    code(shortCode) {
      const route = read(`code:${shortCode}`);
      return route?.entry.case === 'code' ? route.entry.value : undefined;
    },
    customDomain(hostname) {
      const route = read(`host:${hostname}`);
      return route?.entry.case === 'host' && !route.entry.value.removed ? route.entry.value : undefined;
    },
    apply(route) {
      try {
        takeOver([route]);
      } catch (error) {
        // The topic brings it again; the answer to the change must not fail over it.
        logger.error({ err: error }, 'a route could not be written to disk');
      }
    },
    advance: takeOver,
    positions() {
      const kept = store.getRange({ start: 'reached:', end: 'reached;' });
      return new Map(
        [...kept].map(({ key, value }) => [Number(key.slice('reached:'.length)), BigInt(value.toString())]),
      );
    },
    close: () => store.close(),
  };
}

function keyOf({ entry }: Route): string {
  if (entry.case === 'code') return `code:${entry.value.shortCode}`;
  if (entry.case === 'host') return `host:${entry.value.hostname}`;
  throw new TypeError('a route stands for nothing that this gateway knows');
}
