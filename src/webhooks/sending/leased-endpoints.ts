import type { Logger } from 'pino';
import { MAX_NAME } from '../../../common/codes/web-address.ts';
import { encodeId } from '../../../common/contract/ids.ts';
import type { SecretCipher } from '../secret-cipher.ts';
import type { LeasedEndpointRow } from './endpoint-leases.ts';
import type { Capacity, DueDelivery } from './queue.ts';

/** An endpoint that this process leases. */
export interface LeasedEndpoint {
  row: LeasedEndpointRow;
  /** The host name or IP address in its URL, cut to the greatest length of a name: older URLs may have longer ones. */
  host: string;
  /** Decrypted, the current one first; empty when that cannot be decrypted, and then nothing is sent. */
  secrets: readonly string[];
  /** Deliveries fetched and not yet sent. */
  readonly queued: DueDelivery[];
  /** The deliveries fetched and not yet recorded: queued, in flight or completed. */
  readonly fetched: FetchedDeliveries;
  /** Number of requests in flight. */
  inFlight: number;
  /** Number of failed attempts that are not recorded yet. */
  unrecordedFailures: number;
  /**
   * Until when this process may send to it, as far as it knows, in ms of `performance.now()`. Afterwards another may.
   */
  leasedUntil: number;
  /** When it was leased or an attempt was last recorded, in ms of `performance.now()`. */
  lastActiveAt: number;
  /** When the next attempt may be made, on the same clock. */
  notBefore: number;
  /** Until when nothing is sent, as this process could not open a connection, on the same clock. */
  pausedUntil: number;
  /** By how many ms Postgres's clock is ahead of this process's. */
  clockOffsetMs: number;
}

/** Deliveries by their UUIDs, and the size of their bodies. */
class FetchedDeliveries {
  readonly #sizes = new Map<string, number>();
  /** In all, in characters. */
  size = 0;

  get ids(): readonly string[] {
    return [...this.#sizes.keys()];
  }

  get isEmpty(): boolean {
    return this.#sizes.size === 0;
  }

  add({ id, body }: DueDelivery): void {
    this.#sizes.set(id, body.length);
    this.size += body.length;
  }

  delete(id: string): void {
    this.size -= this.#sizes.get(id) ?? 0;
    this.#sizes.delete(id);
  }
}

/**
 * Whether attempts to an endpoint are throttled, because it is failing or has never responded successfully. They are
 * then made one at a time.
 */
export function isThrottled({
  failing_ms,
  verified_at,
}: Pick<LeasedEndpointRow, 'failing_ms' | 'verified_at'>): boolean {
  return failing_ms !== null || verified_at === null;
}

/** The endpoints that this process leases, by their UUIDs. */
export interface LeasedEndpoints extends ReadonlyMap<string, LeasedEndpoint> {
  /** Adds an endpoint, or updates it. `leasedUntil`: if its lease is new or renewed. */
  put(row: LeasedEndpointRow, leasedUntil?: number): void;
  /** Removes an endpoint and its queue: it was released, deleted or disabled, or another process leases it. */
  remove(id: string): void;
  /** Updates the endpoints whose leases were renewed, and removes all others. */
  applyRenewal(rows: readonly LeasedEndpointRow[], leasedUntil: number): void;
  /**
   * How many deliveries to fetch for each endpoint with fewer than `low` queued, so that at most `most` are queued, and
   * of which size, so that the bodies of all that are fetched take `bytes`, or more by the last one.
   */
  capacities(limits: { low: number; most: number; bytes: number }): Capacity[];
  /** UUIDs of the endpoints that have been idle for `ms`. */
  idle(ms: number): string[];
}

export function leasedEndpoints(secretCipher: SecretCipher, logger: Logger): LeasedEndpoints {
  const leased = new Map<string, LeasedEndpoint>();

  function secretsOf({ id, secret, former_secrets }: LeasedEndpointRow): string[] {
    const decrypt = (encrypted: Buffer) => {
      try {
        return [secretCipher.decrypt(id, encrypted)];
      } catch (error) {
        const endpoint = encodeId('hook', id);
        logger.error({ err: error, endpoint }, 'the secret of a webhook endpoint can’t be decrypted');
        return [];
      }
    };
    const current = decrypt(secret);
    // Such an endpoint must not block the others. It stays leased, so that no process claims it over and over.
    if (current.length === 0) return [];
    // Without a former secret whose key is lost, a rotation makes the endpoint work again.
    return [...current, ...former_secrets.flatMap(decrypt)];
  }

  const methods = {
    put(row: LeasedEndpointRow, leasedUntil = leased.get(row.id)?.leasedUntil ?? 0) {
      const now = performance.now();
      const host = new URL(row.url).hostname.replace(/\.$/, '').slice(0, MAX_NAME);
      const clockOffsetMs = row.clock_ms - Date.now();
      const secrets = secretsOf(row);
      const state = { row, host, secrets, notBefore: now + (row.wait ?? 0), clockOffsetMs, leasedUntil };
      const known = leased.get(row.id);
      if (!known)
        leased.set(row.id, {
          ...state,
          queued: [],
          fetched: new FetchedDeliveries(),
          inFlight: 0,
          unrecordedFailures: 0,
          lastActiveAt: now,
          pausedUntil: 0,
        });
      else {
        Object.assign(known, state);
        // The queue may date from before throttling began: an unverified endpoint, for one, only gets test events.
        // Without secrets it would be sent unsigned.
        if (isThrottled(row) || known.secrets.length === 0) {
          for (const { id } of known.queued.splice(0)) known.fetched.delete(id);
        }
      }
    },
    remove(id: string) {
      leased.get(id)?.queued.splice(0);
      leased.delete(id);
    },
    applyRenewal(rows: readonly LeasedEndpointRow[], leasedUntil: number) {
      const renewed = new Set(rows.map(({ id }) => id));
      for (const id of leased.keys()) if (!renewed.has(id)) methods.remove(id);
      for (const row of rows) methods.put(row, leasedUntil);
    },
    capacities({ low, most, bytes }: { low: number; most: number; bytes: number }) {
      const now = performance.now();
      return [...leased].flatMap(([id, { row, secrets, queued, fetched, notBefore }]) => {
        if (secrets.length === 0) return [];
        const { url, secret } = row;
        const hasNone = fetched.isEmpty;
        const known = { id, url, secret, testsOnly: row.verified_at === null, hasNone, bytes: bytes - fetched.size };
        if (isThrottled(row)) return hasNone && notBefore <= now ? { ...known, deliveries: 1 } : [];
        return queued.length < low && known.bytes > 0 ? { ...known, deliveries: most - queued.length } : [];
      });
    },
    idle(ms: number) {
      const before = performance.now() - ms;
      const idle = [...leased.values()].filter(({ secrets, fetched, lastActiveAt }) => {
        return fetched.isEmpty && lastActiveAt <= before && (secrets.length > 0 || ms === 0);
      });
      return idle.map(({ row }) => row.id);
    },
  };
  return Object.assign(leased, methods);
}
