/** Errors of files of the pages that could not be loaded. */
const errors = new WeakSet<Error>();

/** Notes from now on which files could not be loaded. */
export function watchFiles(): void {
  window.addEventListener('vite:preloadError', ({ payload }) => errors.add(payload));
}

/** Whether a file of the pages could not be loaded, as after an update of Signpost while they were open. */
export function isFileMissing(error: unknown): boolean {
  return error instanceof Error && errors.has(error);
}
