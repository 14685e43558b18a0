import { mkdirSync } from 'node:fs';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { open } from 'lmdb';
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
  /** Takes routes over, and in the same transaction how far the topic has been followed. */
  apply(routes: readonly Route[], reached?: { readonly partition: number; readonly next: bigint }): void;
  /** How far the topic has been followed. */
  positions(): Positions;
  close(): Promise<void>;
}

/** Decoded routes that are kept in memory; when there are more, they are decoded again. */
const CACHED = 50_000;

/** Opens the table in `folder`, which is made if it is missing. */
export function openRouteTable(folder: string): RouteTable {
  mkdirSync(folder, { recursive: true });
  const store = open<Buffer, string>({ path: folder, encoding: 'binary', maxDbs: 0, noSubdir: false });
  const cache = new Map<string, Route>();

  function read(key: string): Route | undefined {
    const cached = cache.get(key);
    if (cached) return cached;
    const bytes = store.get(key);
    if (!bytes) return undefined;
    const route = fromBinary(RouteSchema, bytes);
    if (cache.size >= CACHED) cache.clear();
    cache.set(key, route);
    return route;
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
    apply(routes, reached) {
      const newer = routes.filter((route) => (read(keyOf(route))?.version ?? -1n) < route.version);
      store.transactionSync(() => {
        // In their order: of two versions in one call the later one is written last only if it is the newer.
        for (const route of newer) {
          const key = keyOf(route);
          if ((read(key)?.version ?? -1n) >= route.version) continue;
          store.putSync(key, Buffer.from(toBinary(RouteSchema, route)));
          cache.delete(key);
        }
        if (reached) store.putSync(`reached:${reached.partition}`, Buffer.from(String(reached.next)));
      });
    },
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
