import { afterAll } from 'vitest';

const cleanups = new AsyncDisposableStack();

/**
 * Runs `cleanup` after all tests of the calling file, in reverse order of registration. Unlike `afterAll`, which vitest
 * ignores when a hook or a test calls it, this may be called anywhere: vitest loads this file before each test file.
 */
export function afterFile(cleanup: () => Promise<void>): void {
  cleanups.defer(cleanup);
}

afterAll(() => cleanups.disposeAsync());
