import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { open } from 'lmdb';
import type { Logger } from 'pino';
import type { Positions } from '../../../common/log/log.ts';
import { type HostRoute, HostRouteSchema, type Route } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { codeRecord, type FoundRoute, readCode, versionIn } from './route-record.ts';

/**
 * Where codes lead, on the gateway's own disk: what makes a scan independent of everything else. Versions decide, so a
 * late message never undoes a newer change. Any number of processes may have it open; LMDB lets one write at a time.
 */
export interface RouteTable {
  /** The route of a short code, as any process last wrote it; undefined when the table does not know it. */
  code(shortCode: string): FoundRoute | undefined;
  /** The custom domain that a host is, or was (`removed`). `hostname`: in lower case, without a port. */
  customDomain(hostname: string): HostRoute | undefined;
  /** Takes one route over: scans see it when this returns, and after a kill. A disk that takes nothing is logged. */
  apply(route: Route): void;
  /** The same in one commit with all others of this turn of the event loop; resolves when scans see it. */
  applySoon(route: Route): Promise<void>;
  /**
   * Takes routes of the topic over and, with the last of them, how far it was followed. Rejects when the disk takes
   * nothing.
   */
  advance(routes: readonly Route[], reached: Reached): Promise<void>;
  /** How far the topic has been followed. */
  positions(): Positions;
  /** Which topic those positions belong to: see `Log.identity`; undefined when it was never told. */
  topic(): string | undefined;
  /** Begins to follow another topic of the same name: none of it has been read. Routes stay; versions decide. */
  beginTopic(identity: string): Promise<void>;
  close(): Promise<void>;
}

/** A partition of the topic, and the offset that it goes on from. */
export interface Reached {
  readonly partition: number;
  readonly next: bigint;
}

/** What the keys of codes, hosts and positions begin with. */
const [CODE, HOST, POSITION] = ['c', 'h', 'p'];
/** The key of the topic's identity. */
const TOPIC = 't';

/**
 * Routes in one transaction. Every page that it touches is written anew before the old one is free: with 10,000 the file
 * grew half as large again as with 1,000. And other processes that write wait meanwhile, a worker with all that it does.
 */
const AT_ONCE = 200;

/**
 * How long the table is left to them then, in ms: who waits is woken, and finds it taken again if nobody pauses. Beside
 * 50,000 routes a write of another process took 1.9 ms, and 6.2 at the 90th percentile; with 1,000 at once and no pause
 * it took 35 and 62. The 50,000 took 1.9 s, and 1.3 without.
 */
const PAUSE_MS = 1;

/** Longer than any hostname or short code; LMDB takes no keys over 1,978 bytes, and anybody may send such a host. */
const MOST_NAME = 255;

/** Opens the table in `folder`, which is made if it is missing. */
export function openRouteTable(folder: string, logger: Logger): RouteTable {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const store = open<Buffer, string>({ path: folder, encoding: 'binary', noSubdir: false });
  closeToOthers(folder, logger);
  /** Hosts that were asked for in this turn of the event loop: nearly always the same one. */
  const hosts = new Map<string, HostRoute | undefined>();
  let isFresh = false;
  /** What the next commit takes over, and when it has. */
  const waiting: Route[] = [];
  let soon: Promise<void> | undefined;

  /**
   * All look-ups of a turn of the event loop see the table as it was at the first of them. All that this turn answers
   * was asked before that, so whoever asked after another process had answered to a change sees the change.
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
   * Decoded routes are not kept in memory: reading one of a million takes 2.5 µs, a kept one would have to be compared
   * with what other processes wrote, and the pages of the table are in memory as it is.
   */
  function read(key: string): Buffer | undefined {
    if (key.length > MOST_NAME) return undefined;
    return store.getBinaryFast(key);
  }

  /**
   * One commit on this disk took 0.2 ms, and several where others wait for it. It is not put off beyond the answer: a
   * gateway that is killed right after one knows it. LMDB's commits beside the event loop are no way out: after one that
   * a full disk refused, every later one waits for ever.
   */
  function takeOver(routes: readonly Route[], reached?: Reached): void {
    store.transactionSync(() => {
      for (const route of routes) {
        const [key, record] = recordOf(route);
        if (!record) logger.error({ key }, 'a route that leads nowhere was left out');
        if (!record || isKnown(key, route.version)) continue;
        store.putSync(key, record);
      }
      if (reached) store.putSync(POSITION + reached.partition, Buffer.from(String(reached.next)));
    });
    isFresh = false;
  }

  function apply(routes: readonly Route[]): void {
    try {
      takeOver(routes);
    } catch (error) {
      // The topic brings them again; the answer to a change must not fail over it.
      logger.error({ err: error }, 'a route could not be written to disk');
    }
  }

  function isKnown(key: string, version: bigint): boolean {
    const known = store.getBinaryFast(key);
    return known !== undefined && versionIn(known) >= version;
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
    apply: (route) => apply([route]),
    applySoon(route) {
      soon ??= new Promise((resolve) => {
        setImmediate(() => {
          soon = undefined;
          apply(waiting.splice(0));
          resolve();
        });
      });
      waiting.push(route);
      return soon;
    },
    async advance(routes, reached) {
      let at = 0;
      for (; routes.length - at > AT_ONCE; at += AT_ONCE) {
        takeOver(routes.slice(at, at + AT_ONCE));
        await sleep(PAUSE_MS);
      }
      takeOver(routes.slice(at), reached);
    },
    positions() {
      const kept = store.getRange({ start: POSITION, end: `${POSITION}~` });
      return new Map([...kept].map(({ key, value }) => [Number(key.slice(1)), BigInt(value.toString())]));
    },
    topic: () => store.get(TOPIC)?.toString(),
    async beginTopic(identity) {
      store.transactionSync(() => {
        for (const key of [...store.getKeys({ start: POSITION, end: `${POSITION}~` })]) store.removeSync(key);
        store.putSync(TOPIC, Buffer.from(identity));
      });
    },
    close: () => store.close(),
  };
}

/** The targets and landing pages of all accounts are nobody else's business. LMDB makes files that everybody may read. */
function closeToOthers(folder: string, logger: Logger): void {
  try {
    chmodSync(folder, 0o700);
    for (const file of ['data.mdb', 'lock.mdb']) chmodSync(join(folder, file), 0o600);
  } catch (error) {
    // A file system without modes, or another owner, stops no redirects.
    logger.warn({ err: error }, 'the route table can’t be closed to other users of this machine');
  }
}

/** A host in the route table: version (8 bytes), and what the topic says of it as protobuf. */
function hostRecord(version: bigint, host: HostRoute): Buffer {
  const record = Buffer.alloc(8);
  record.writeBigUInt64BE(version);
  return Buffer.concat([record, toBinary(HostRouteSchema, host)]);
}

function readHost(record: Buffer | undefined): HostRoute | undefined {
  if (!record) return undefined;
  return fromBinary(HostRouteSchema, Buffer.from(record.subarray(8, record.length)));
}

function recordOf({ version, entry }: Route): [key: string, record: Buffer | undefined] {
  if (entry.case === 'code') return [CODE + entry.value.shortCode, codeRecord(version, entry.value)];
  if (entry.case === 'host') return [HOST + entry.value.hostname, hostRecord(version, entry.value)];
  throw new TypeError('a route stands for nothing that this gateway knows');
}
