import type { Logger } from 'pino';
import { encodeId } from '../contract/ids.ts';
import type { DueRow, HeldRow } from './queue.ts';
import type { Seal } from './seal.ts';

/** An endpoint that this process holds. */
export interface Held {
  row: HeldRow;
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
  room(low: number, most: number): ReadonlyMap<string, number>;
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
      const secrets = secretsOf(row);
      const known = held.get(row.id);
      if (known) Object.assign(known, { row, secrets });
      else held.set(row.id, { row, secrets, waiting: [], inHand: new Set(), out: 0, busyAt: performance.now() });
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
    room(low: number, most: number) {
      const rooms = new Map<string, number>();
      for (const [id, { secrets, waiting }] of held) {
        if (secrets.length > 0 && waiting.length < low) rooms.set(id, most - waiting.length);
      }
      return rooms;
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
