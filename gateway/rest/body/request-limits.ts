/** Limits of one worker: time, and memory for the bodies of authenticated callers. */
export interface RequestLimits {
  /** How long a body may take to arrive, in ms. */
  readonly bodyMs: number;
  /** How long a request may wait for memory, and then to be parsed, in ms each. */
  readonly waitMs: number;
  /** Bytes of bodies in memory. A request holds its memory until the core has responded. */
  readonly bodyBytes: number;
  /** The maximum that one account may hold, in bytes. */
  readonly accountBodyBytes: number;
  /** The number of requests that may wait for memory, of all accounts and of one. Each holds a connection with up to 128 KiB. */
  readonly waiting: number;
  readonly accountWaiting: number;
}

const MIB = 1024 * 1024;

/**
 * 30 s allow a body of 3,500,000 bytes at 1 Mbit/s. One account may use half of the memory, enough for nine bodies of that
 * size, so that it can't starve the others.
 */
export const REQUEST_LIMITS: RequestLimits = {
  bodyMs: 30_000,
  waitMs: 10_000,
  bodyBytes: 64 * MIB,
  accountBodyBytes: 32 * MIB,
  waiting: 256,
  accountWaiting: 128,
};
