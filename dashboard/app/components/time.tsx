import { dateOf, type Instant, useFormat } from '../data/format.ts';

/** An instant relative to now; hovering shows it exactly, in the browser's time zone. */
export function RelativeTime({ instant }: { readonly instant: Instant | undefined }) {
  const format = useFormat();
  if (!instant) return null;
  return (
    <time dateTime={dateOf(instant).toISOString()} title={format.exact(instant)}>
      {format.relative(instant)}
    </time>
  );
}
