import { getPriority } from 'node:os';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { runThreadInBackground } from './run-in-background.ts';

/** Starts a thread in the background; prints its priority and that of the main thread as JSON. */
if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url));
  worker.once('message', (thread: number) => console.log(JSON.stringify({ main: getPriority(), thread })));
} else {
  runThreadInBackground();
  parentPort?.postMessage(getPriority());
}
