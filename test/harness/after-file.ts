import { afterAll } from 'vitest';

const cleanups = new AsyncDisposableStack();

/**
 * Runs `cleanup` after all tests of the calling file, what came last first. Unlike `afterAll`, which vitest forgets when
 * a hook or a test calls it, this may be called from everywhere: vitest loads this file before each test file.
 */
export function afterFile(cleanup: () => Promise<void>): void {
  cleanups.defer(cleanup);
}

afterAll(() => cleanups.disposeAsync());
