/** A part that takes longer to respond counts as unavailable, in ms. */
const CHECK_TIMEOUT_MS = 1_000;

/** Whether `answer` resolves within `CHECK_TIMEOUT_MS`. */
export function respondsInTime(answer: Promise<unknown>): Promise<boolean> {
  const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), CHECK_TIMEOUT_MS).unref());
  const answered = answer.then(
    () => true,
    () => false,
  );
  return Promise.race([answered, late]);
}
