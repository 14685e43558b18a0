import type { Logger } from 'pino';
import { encodeId } from '../../common/contract/ids.ts';
import type { DueRow, HeldRow, Room } from './queue.ts';
import type { Seal } from './seal.ts';

/** An endpoint that this process holds. */
export interface Held {
  row: HeldRow;
  /** The name or address in its URL. */
  host: string;
  /** In clear; none when they can't be opened, and then nothing is sent. */
  secrets: readonly string[];
  /** Fetched and not yet sent. */
  readonly waiting: DueRow[];
  /** Fetched and not yet recorded. */
  readonly inHand: Set<string>;
  /** Requests that are out. */
  out: number;
  /** When there was last something to do, in ms since the process started. */
  busyAt: number;
  /** No attempt before, on the same clock. */
  notBefore: number;
}

/** Whether attempts to an endpoint are limited: it fails, or has never answered. They are made one at a time. */
export function isLimited({ failing_since, verified_at }: Pick<HeldRow, 'failing_since' | 'verified_at'>): boolean {
  return failing_since !== null || verified_at === null;
}

/** The endpoints that this process holds, by their ids. */
export interface Holdings extends ReadonlyMap<string, Held> {
  /** Holds an endpoint, or takes over what has changed of it. */
  hold(row: HeldRow): void;
  /** What waits for an endpoint that is gone, disabled or somebody else's is none of ours any more. */
  drop(id: string): void;
  /** Takes over what was renewed; what is missing there is held no longer. */
  renewed(rows: readonly HeldRow[]): void;
  /** How many deliveries each endpoint has room for, when fewer than `low` wait; at most `most` wait then. */
  rooms(low: number, most: number): Room[];
  /** Those that have had nothing to do for so many ms. */
  idle(ms: number): string[];
}

export function holdings(seal: Seal, logger: Logger): Holdings {
  const held = new Map<string, Held>();

  function secretsOf({ id, secret, former_secret }: HeldRow): string[] {
    try {
      return [secret, former_secret].flatMap((sealed) => (sealed ? [seal.open(id, sealed)] : []));
    } catch (error) {
      // One endpoint that can't be read must not keep the others; it is held so that nobody tries all the time.
      logger.error({ err: error, endpoint: encodeId('hook', id) }, 'the secret of a webhook endpoint does not open');
      return [];
    }
  }

  const own = {
    hold(row: HeldRow) {
      const now = performance.now();
      const host = new URL(row.url).hostname.replace(/\.$/, '');
      const state = { row, host, secrets: secretsOf(row), notBefore: now + (row.wait ?? 0) };
      const known = held.get(row.id);
      if (!known) held.set(row.id, { ...state, waiting: [], inHand: new Set(), out: 0, busyAt: now });
      else {
        Object.assign(known, state);
        // Fetched when nothing limited it: it may have to be something else now.
        if (isLimited(row)) for (const { id } of known.waiting.splice(0)) known.inHand.delete(id);
      }
    },
    drop(id: string) {
      held.get(id)?.waiting.splice(0);
      held.delete(id);
    },
    renewed(rows: readonly HeldRow[]) {
      const kept = new Set(rows.map(({ id }) => id));
      for (const id of held.keys()) if (!kept.has(id)) own.drop(id);
      for (const row of rows) own.hold(row);
    },
    rooms(low: number, most: number) {
      const now = performance.now();
      return [...held].flatMap(([id, { row, secrets, waiting, inHand, notBefore }]) => {
        if (secrets.length === 0) return [];
        const testsOnly = row.verified_at === null;
        if (isLimited(row)) return inHand.size === 0 && notBefore <= now ? { id, deliveries: 1, testsOnly } : [];
        return waiting.length < low ? { id, deliveries: most - waiting.length, testsOnly } : [];
      });
    },
    idle(ms: number) {
      const before = performance.now() - ms;
      const idle = [...held.values()].filter(({ secrets, inHand, busyAt }) => {
        return inHand.size === 0 && busyAt <= before && (secrets.length > 0 || ms === 0);
      });
      return idle.map(({ row }) => row.id);
    },
  };
  return Object.assign(held, own);
}
