import type { Options, Params } from 'cli-progress';

/** Most commands end sooner; nothing flashes on the terminal then. */
const DELAY_MS = 500;

/** Reports that `done` of `total` items are finished; without a total, or with 0, it is unknown. */
export type Update = (done: number, total?: number) => void;

/**
 * Executes a long operation and meanwhile shows on standard error how far it is, or for how long it has been running if
 * nobody knows. Nothing is shown with `--json` (`json`) or if standard error is not a terminal. `what`: such as
 * `Exporting images`.
 */
export async function withProgress<Result>(
  { json, what }: { readonly json: boolean; readonly what: string },
  work: (update: Update) => Promise<Result>,
): Promise<Result> {
  if (json || !process.stderr.isTTY) return work(() => {});
  const { default: cliProgress } = await import('cli-progress');
  const { Format, Presets, SingleBar } = cliProgress;
  const format = (options: Options, { progress, total, value, startTime }: Params) => {
    if (total > 0) return `${what} ${Format.BarFormat?.(progress, options)} ${value} of ${total}`;
    const seconds = Math.floor((Date.now() - startTime) / 1_000);
    return `${what} … ${value > 0 ? value : `${seconds} s`}`;
  };
  // With `gracefulExit` the first Ctrl-C would only stop the bar, and without `linewrap` the end of the process by a
  // signal would leave a terminal that does not wrap lines.
  const bar = new SingleBar(
    { format, fps: 5, clearOnComplete: true, gracefulExit: false, linewrap: true, barsize: 30 },
    Presets.shades_classic,
  );
  const state = { done: 0, total: 0 };
  const starting = setTimeout(() => bar.start(state.total, state.done), DELAY_MS);
  try {
    return await work((done, total = state.total) => {
      Object.assign(state, { done, total });
      if (!bar.isActive) return;
      bar.setTotal(total);
      bar.update(done);
    });
  } finally {
    clearTimeout(starting);
    if (bar.isActive) bar.stop();
  }
}
