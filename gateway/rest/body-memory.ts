import { ConnectError } from '@connectrpc/connect';
import { failure } from '../../common/contract/errors.ts';
import type { RequestLimits } from './request-limits.ts';

/** A request that waits for memory. */
interface Waiter {
  readonly bytes: number;
  start(): void;
}

/** What one account holds, and what it waits for in the order of its requests. */
interface Share {
  heldBytes: number;
  readonly waiters: Set<Waiter>;
}

/**
 * The memory that request bodies may take in this process, shared among accounts: none holds more than its part, and
 * those that wait are served in turn. A body is not read before there is room for it.
 */
export class BodyMemory {
  readonly #limits: RequestLimits;
  /** Those of accounts that hold or wait for something; the one that was served last stands last. */
  readonly #shares = new Map<string, Share>();
  #freeBytes: number;
  #waiting = 0;

  constructor(limits: RequestLimits) {
    this.#limits = limits;
    this.#freeBytes = limits.bodyBytes;
  }

  /**
   * Resolves when the memory is there, with a function that gives it back. Rejects when `signal` aborts before, and with
   * UNAVAILABLE when too many requests wait already.
   */
  async take(account: string, bytes: number, signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw ConnectError.from(signal.reason);
    const share = this.#shares.get(account) ?? { heldBytes: 0, waiters: new Set() };
    this.#shares.set(account, share);
    try {
      await this.#wait(share, bytes, signal);
    } catch (error) {
      this.#changed(account, share);
      throw error;
    }
    return () => {
      share.heldBytes -= bytes;
      this.#freeBytes += bytes;
      this.#changed(account, share);
    };
  }

  #wait(share: Share, bytes: number, signal: AbortSignal): Promise<void> {
    const { waiting, accountWaiting } = this.#limits;
    return new Promise((resolve, reject) => {
      const leave = () => {
        share.waiters.delete(waiter);
        this.#waiting--;
        signal.removeEventListener('abort', abort);
      };
      const abort = () => {
        leave();
        reject(ConnectError.from(signal.reason));
      };
      const start = () => {
        leave();
        share.heldBytes += bytes;
        this.#freeBytes -= bytes;
        resolve();
      };
      const waiter = { bytes, start };
      share.waiters.add(waiter);
      this.#waiting++;
      signal.addEventListener('abort', abort);
      this.#serve();
      if (!share.waiters.has(waiter)) return;
      if (this.#waiting > waiting || share.waiters.size > accountWaiting) {
        leave();
        reject(tooBusy());
      }
    });
  }

  /** Gives free memory to accounts in turn. No body overtakes one that does not fit, or large ones would wait for ever. */
  #serve(): void {
    for (const [account, share] of this.#shares) {
      const [waiter] = share.waiters;
      if (!waiter || share.heldBytes + waiter.bytes > this.#limits.accountBodyBytes) continue;
      if (waiter.bytes > this.#freeBytes) return;
      waiter.start();
      // The loop comes to it again, behind all others.
      this.#shares.delete(account);
      this.#shares.set(account, share);
    }
  }

  /** After a request of the account has left. */
  #changed(account: string, share: Share): void {
    if (share.heldBytes === 0 && share.waiters.size === 0) this.#shares.delete(account);
    this.#serve();
  }
}

/** The 503 of a request for which this process has no room at the moment. */
export function tooBusy(): ConnectError {
  return failure('UNAVAILABLE', 'Too many large requests are being read at the moment; try again.');
}
