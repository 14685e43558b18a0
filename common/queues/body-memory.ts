import { ConnectError } from '@connectrpc/connect';
import { failure } from '../contract/errors.ts';

/** Limits of the memory for bodies in a process. */
export interface MemoryLimits {
  /** Bytes of bodies in memory. A request holds its memory until it was answered. */
  readonly bodyBytes: number;
  /** The maximum that one account may hold, in bytes. */
  readonly accountBodyBytes: number;
  /**
   * The number of requests that may wait for memory, of all accounts and of one. Each holds a connection with up to 128
   * KiB.
   */
  readonly waiting: number;
  readonly accountWaiting: number;
  /** How long a request may wait for memory, in ms. */
  readonly waitMs: number;
}

/** A request waiting for memory. */
interface Waiter {
  readonly bytes: number;
  start(): void;
}

/** The memory that one account holds, and its waiting requests in order. */
interface Share {
  heldBytes: number;
  readonly waiters: Set<Waiter>;
}

/**
 * Manages the memory for request bodies in this process, shared among accounts: none holds more than its share, and
 * waiting accounts are served round-robin. A body is not read before its memory is reserved.
 */
export class BodyMemory {
  readonly #limits: MemoryLimits;
  /** By account that holds or waits for memory; the one that was served last is last. */
  readonly #shares = new Map<string, Share>();
  #freeBytes: number;
  #waiting = 0;

  constructor(limits: MemoryLimits) {
    this.#limits = limits;
    this.#freeBytes = limits.bodyBytes;
  }

  /**
   * Resolves once the memory is reserved, with a function that releases it. Rejects if `signal` aborts before, and with
   * UNAVAILABLE if too many requests are waiting, or this one has waited for too long.
   */
  async take(account: string, bytes: number, signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw ConnectError.from(signal.reason);
    const share = this.#shares.get(account) ?? { heldBytes: 0, waiters: new Set() };
    this.#shares.set(account, share);
    try {
      await this.#wait(share, bytes, signal);
    } catch (error) {
      this.#onReleased(account, share);
      throw error;
    }
    return () => {
      share.heldBytes -= bytes;
      this.#freeBytes += bytes;
      this.#onReleased(account, share);
    };
  }

  #wait(share: Share, bytes: number, signal: AbortSignal): Promise<void> {
    const { waiting, accountWaiting, waitMs } = this.#limits;
    return new Promise((resolve, reject) => {
      const dequeue = () => {
        share.waiters.delete(waiter);
        this.#waiting--;
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
      };
      const refuse = (error: ConnectError) => {
        dequeue();
        reject(error);
      };
      const abort = () => refuse(ConnectError.from(signal.reason));
      const timer = setTimeout(() => refuse(tooBusy()), waitMs);
      const start = () => {
        dequeue();
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
      if (this.#waiting > waiting || share.waiters.size > accountWaiting) refuse(tooBusy());
    });
  }

  /**
   * Assigns free memory to accounts round-robin. No body overtakes one that does not fit, or large ones would starve.
   */
  #serve(): void {
    for (const [account, share] of this.#shares) {
      const [waiter] = share.waiters;
      if (!waiter || share.heldBytes + waiter.bytes > this.#limits.accountBodyBytes) continue;
      if (waiter.bytes > this.#freeBytes) return;
      waiter.start();
      // Moved to the end, so the loop reaches it again after all others.
      this.#shares.delete(account);
      this.#shares.set(account, share);
    }
  }

  /** Called after an account has released memory or a request of it has left the queue. */
  #onReleased(account: string, share: Share): void {
    if (share.heldBytes === 0 && share.waiters.size === 0) this.#shares.delete(account);
    this.#serve();
  }
}

/** The 503 of a request for which this process has no memory at the moment. */
export function tooBusy(): ConnectError {
  return failure('UNAVAILABLE', 'Too many large requests are being read at the moment; try again.');
}
