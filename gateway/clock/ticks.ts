/** The time between ticks, in ms. */
export const TICK_MS = 500;

interface Task {
  readonly everyTicks: number;
  /** The number of ticks until the next call. */
  left: number;
  readonly work: () => void;
}

const tasks = new Set<Task>();
let timer: NodeJS.Timeout | undefined;

/**
 * Calls `work` every `intervalMs`, a multiple of `TICK_MS`, until the returned function is called. All work of a
 * process that is due is called at the same tick, so that an idle process wakes up twice a second and not for each
 * interval. Does not keep the process running.
 */
export function onTicks(intervalMs: number, work: () => void): () => void {
  const everyTicks = intervalMs / TICK_MS;
  const task: Task = { everyTicks, left: everyTicks, work };
  tasks.add(task);
  timer ??= setInterval(tick, TICK_MS).unref();
  return () => {
    tasks.delete(task);
    if (tasks.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function tick(): void {
  for (const task of tasks) {
    if (--task.left > 0) continue;
    task.left = task.everyTicks;
    task.work();
  }
}
