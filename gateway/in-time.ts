/** How long a part may take to answer before it counts as away, in ms. */
export const PATIENCE_MS = 1_000;

/** Whether it answers, and soon. */
export function inTime(answer: Promise<unknown>): Promise<boolean> {
  const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), PATIENCE_MS).unref());
  const answered = answer.then(
    () => true,
    () => false,
  );
  return Promise.race([answered, late]);
}
