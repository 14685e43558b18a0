import { useSyncExternalStore } from 'react';
import { dateOf, type Instant, useFormat } from '../data/format.ts';

/** How often relative times are written anew, in ms. */
const TICK_MS = 60_000;

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** An instant relative to now; hovering shows it exactly, in the browser's time zone. */
export function RelativeTime({ instant }: { readonly instant: Instant | undefined }) {
  const format = useFormat();
  const relative = useRelativeTime();
  if (!instant) return null;
  return (
    <time dateTime={dateOf(instant).toISOString()} title={format.exact(instant)}>
      {relative(instant)}
    </time>
  );
}

/** Writes an instant relative to now, for sentences; every minute the component that does so is rendered again. */
export function useRelativeTime(): (instant: Instant) => string {
  const { relative } = useFormat();
  useSyncExternalStore(subscribe, minute);
  return (instant) => relative(instant);
}

/** All relative times of a page share one timer. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    for (const each of listeners) each();
  }, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function minute(): number {
  return Math.floor(Date.now() / TICK_MS);
}
