import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { failure } from '../../common/contract/errors.ts';

/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, between which a timestamp can be written as JSON. */
const FIRST = -62_135_596_800n;
const LAST = 253_402_300_799n;

/** What is wrong with an instant that a message of the binary form contains; undefined if nothing is. */
export function problemOfInstant(field: string, instant: Timestamp | undefined): string | undefined {
  if (!instant) return undefined;
  const { seconds, nanos } = instant;
  const isValid = seconds >= FIRST && seconds <= LAST && nanos >= 0 && nanos <= 999_999_999;
  return isValid ? undefined : `${field}: must be in the years 1 to 9999.`;
}

/** The instant of a request's field `at`; undefined if it is absent. Fails with INVALID_FIELD. */
export function instantOrFailure(at: Timestamp | undefined): Date | undefined {
  const problem = problemOfInstant('at', at);
  if (problem !== undefined) throw failure('INVALID_FIELD', problem);
  return at && timestampDate(at);
}
