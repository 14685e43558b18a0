import type { MemoryLimits } from '../../../common/queues/body-memory.ts';

/** Limits of one worker: time, and memory for the bodies of authenticated callers. */
export interface RequestLimits extends MemoryLimits {
  /** How long a body may take to arrive, in ms. */
  readonly bodyMs: number;
  /** How long a request may wait for memory, and then to be parsed, in ms each. */
  readonly waitMs: number;
}

const MIB = 1024 * 1024;

/** The maximum size of a body, in bytes. Source: docs/contract.md, "Bodies and envelopes". */
export const MAX_BODY_BYTES = MIB;

/** The same for a batch. Source: docs/contract.md, "Batches". */
export const MAX_BATCH_BODY_BYTES = 3_500_000;

/** Both as text. */
export const MAX_BODY = `${MAX_BODY_BYTES / MIB} MiB`;
export const MAX_BATCH_BODY = `${MAX_BATCH_BODY_BYTES.toLocaleString('en')} bytes`;

/**
 * 30 s allow a body of 3,500,000 bytes at 1 Mbit/s. One account may use half of the memory, enough for nine bodies of
 * that size, so that it can't starve the others.
 */
export const REQUEST_LIMITS: RequestLimits = {
  bodyMs: 30_000,
  waitMs: 10_000,
  bodyBytes: 64 * MIB,
  accountBodyBytes: 32 * MIB,
  waiting: 256,
  accountWaiting: 128,
};
