const UNITS = [
  ['year', 365 * 86_400],
  ['month', 30 * 86_400],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** How long ago a time (RFC 3339) was, in one unit: `3d ago`; `now` below a minute. */
export function age(time: string, now: Date): string {
  const seconds = (now.getTime() - Date.parse(time)) / 1_000;
  const found = UNITS.find(([, length]) => seconds >= length);
  if (!found) return 'now';
  const [unit, length] = found;
  return new Intl.RelativeTimeFormat('en', { style: 'narrow' }).format(-Math.floor(seconds / length), unit);
}

/** A time in this machine's time zone, and how long ago it was: `22 Nov 2026, 14:05 CET (3d ago)`. */
export function dateAndTime(time: string, now: Date): string {
  const format = new Intl.DateTimeFormat('en-GB', {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
  });
  return `${format.format(new Date(time))} (${age(time, now)})`;
}
