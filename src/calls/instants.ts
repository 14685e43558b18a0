import { type Timestamp, timestampDate, timestampMs } from '@bufbuild/protobuf/wkt';
import { failure } from '../../common/contract/errors.ts';

/** 0001-01-01T00:00:00Z, and the end of 9999 in ms, between which a timestamp can be written as JSON. */
const FIRST = -62_135_596_800n;
const END_MS = Date.UTC(10_000, 0);

/** What is wrong with an instant that a message of the binary form contains; undefined if nothing is. */
export function problemOfInstant(field: string, instant: Timestamp | undefined): string | undefined {
  if (!instant) return undefined;
  const { seconds, nanos } = instant;
  // Dates are rounded to milliseconds: the last half of one in 9999 would be in the year 10000.
  const isValid = seconds >= FIRST && timestampMs(instant) < END_MS && nanos >= 0 && nanos <= 999_999_999;
  return isValid ? undefined : `${field}: must be in the years 1 to 9999.`;
}

/** The instant of a request's field; undefined if it is absent. Fails with INVALID_FIELD. */
export function instantOrFailure(field: string, instant: Timestamp | undefined): Date | undefined {
  const problem = problemOfInstant(field, instant);
  if (problem !== undefined) throw failure('INVALID_FIELD', problem);
  return instant && timestampDate(instant);
}
