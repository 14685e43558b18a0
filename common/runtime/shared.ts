/** How long an answer is given again, in ms. */
const CACHED_MS = 1_000;

/** Asks once for all that ask at the same time or soon after: anybody may ask for health, as often as they like. */
export function shared<Answer>(ask: () => Promise<Answer>, cachedMs = CACHED_MS): () => Promise<Answer> {
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
