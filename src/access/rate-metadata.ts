import type { failure } from '../../common/contract/errors.ts';
import type { Rate } from './caller.ts';

/** Adds the rate to the metadata of an error. */
export function withRate(error: ReturnType<typeof failure>, rate: Rate) {
  writeRate(error.metadata, rate);
  return error;
}

/** Writes the rate as `ratelimit-limit`, `-remaining` and `-reset`, and Postgres's clock at admission as `signpost-clock`. */
export function writeRate(headers: Headers, { limit, used, reset, clock }: Rate): void {
  headers.set('ratelimit-limit', limit === null ? 'unlimited' : String(limit));
  headers.set('ratelimit-remaining', limit === null ? 'unlimited' : String(Math.max(0, limit - used)));
  headers.set('ratelimit-reset', String(reset));
  headers.set('signpost-clock', clock);
}
