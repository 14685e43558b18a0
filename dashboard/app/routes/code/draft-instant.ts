import { type Timestamp, timestampDate, timestampFromDate, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';

/** An instant of a period. */
export interface DraftInstant {
  /** `YYYY-MM-DDTHH:MM` in the browser's time zone; empty for none. */
  readonly typed: string;
  /**
   * The exact instant until the field is edited: the hour that autumn repeats, and fractions of seconds, can't be
   * typed.
   */
  readonly unedited?: Timestamp | undefined;
}

/** Why what was typed into a `datetime-local` field is no instant. */
export type DateProblem = 'badYear' | 'skippedTime';

/** An instant as the form shows it before it is edited. */
export function instantDraft(instant: Timestamp | undefined): DraftInstant {
  return { typed: localInstant(instant), unedited: instant };
}

export function instantOf({ typed, unedited }: DraftInstant): Timestamp | undefined {
  return unedited ?? typedInstant(typed);
}

/** An instant as `datetime-local` fields have it: in the browser's time zone, to the second. */
function localInstant(instant: Timestamp | undefined): string {
  if (!instant) return '';
  const date = timestampDate(instant);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19).replace(/:00$/, '');
}

/**
 * Which one an instant is of the two with its local time, in the hour that autumn repeats; undefined in other hours. A
 * typed time means the first.
 */
export function repetitionOf(draft: DraftInstant): 'first' | 'second' | undefined {
  const instant = instantOf(draft);
  if (!instant) return undefined;
  const shifted = (ms: number) => localInstant(timestampFromMs(timestampMs(instant) + ms));
  // Most clocks go back by an hour, those of Lord Howe Island by half of one.
  const isLike = (sign: number) => [30, 60].some((minutes) => shifted(sign * minutes * 60_000) === shifted(0));
  if (isLike(1)) return 'first';
  return isLike(-1) ? 'second' : undefined;
}

/** The instant of a `datetime-local` field; undefined if it has none, or none that can be sent. */
export function typedInstant(typed: string): Timestamp | undefined {
  return typed === '' || dateProblem(typed) ? undefined : timestampFromDate(new Date(typed));
}

/**
 * Such fields let people type years of six digits, which `Date` does not understand, and the hour that spring leaves
 * out, for which `Date` takes the one after it.
 */
export function dateProblem(typed: string): DateProblem | undefined {
  if (typed === '') return undefined;
  const date = new Date(typed);
  const year = date.getUTCFullYear();
  if (!(year >= 1 && year <= 9_999)) return 'badYear';
  const [, day, hours, minutes] = /-(\d+)T(\d+):(\d+)/.exec(typed)?.map(Number) ?? [];
  const isKept = date.getDate() === day && date.getHours() === hours && date.getMinutes() === minutes;
  return isKept ? undefined : 'skippedTime';
}
