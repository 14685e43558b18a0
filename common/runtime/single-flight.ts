/** How long a result is cached by default, in ms. */
const CACHED_MS = 1_000;

/**
 * Runs `ask` once for concurrent callers and caches its result for `cachedMs`: anybody may ask for health, at any rate.
 */
export function singleFlight<Answer>(ask: () => Promise<Answer>, cachedMs = CACHED_MS): () => Promise<Answer> {
  let last: { readonly answer: Promise<Answer>; until: number } | undefined;
  return () => {
    if (last && performance.now() < last.until) return last.answer;
    const asked = { answer: ask(), until: Number.POSITIVE_INFINITY };
    last = asked;
    const believe = () => {
      asked.until = performance.now() + cachedMs;
    };
    asked.answer.then(believe, believe);
    return asked.answer;
  };
}
