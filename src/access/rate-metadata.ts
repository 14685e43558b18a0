import type { failure } from '../../common/contract/errors.ts';
import { METADATA } from '../../common/contract/metadata.ts';
import type { Rate } from './caller.ts';

/** Adds the rate to the metadata of an error. */
export function withRate(error: ReturnType<typeof failure>, rate: Rate) {
  writeRate(error.metadata, rate);
  return error;
}

/** Writes the rate, and Postgres's clock at admission. */
export function writeRate(headers: Headers, { limit, used, reset, clock }: Rate): void {
  headers.set(METADATA.rateLimit, limit === null ? 'unlimited' : String(limit));
  headers.set(METADATA.rateRemaining, limit === null ? 'unlimited' : String(Math.max(0, limit - used)));
  headers.set(METADATA.rateReset, String(reset));
  headers.set(METADATA.clock, clock);
}
