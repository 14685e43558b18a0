/** What one worker spends on requests: time, and memory for the bodies of authenticated callers. */
export interface RequestLimits {
  /** How long a body may take to arrive, in ms. */
  readonly bodyMs: number;
  /** How long a request may wait for memory, and then for its turn to be parsed, in ms each. */
  readonly waitMs: number;
  /** Bytes of bodies in memory. A request holds its share until the core has answered. */
  readonly bodyBytes: number;
  /** The most of them that one account may hold. */
  readonly accountBodyBytes: number;
  /** Requests that wait for memory, of all accounts and of one. Each holds a connection and up to 128 KiB of it. */
  readonly waiting: number;
  readonly accountWaiting: number;
}

const MIB = 1024 * 1024;

/**
 * 30 s for a body allow 3,500,000 bytes at 1 Mbit/s. Half of the memory is room for nine bodies of that size, so one
 * account can't use up what others need.
 */
export const REQUEST_LIMITS: RequestLimits = {
  bodyMs: 30_000,
  waitMs: 10_000,
  bodyBytes: 64 * MIB,
  accountBodyBytes: 32 * MIB,
  waiting: 256,
  accountWaiting: 128,
};
