/** How long a part may take to answer before it counts as away, in ms. */
export const PATIENCE_MS = 1_000;

/**
 * A time that all processes of a machine tell alike, in ms, and that no clock which is set moves: for what one of them
 * measures and another one tells.
 */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Whether it answers, and soon. */
export function inTime(answer: Promise<unknown>): Promise<boolean> {
  const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), PATIENCE_MS).unref());
  const answered = answer.then(
    () => true,
    () => false,
  );
  return Promise.race([answered, late]);
}
