import { once } from 'node:events';
import { stopAtOnce, stopRequest } from './stop-request.ts';

/**
 * A process whose parent is gone `before` it calls `stopAtOnce`, `after` that, or once it is `ready`. If a signal is
 * named, it is asked to stop at that moment.
 */
const [, , moment, signal] = process.argv;
// Waiting for a signal or a message does not keep a process alive.
setInterval(() => undefined, 1_000);
const gone = once(process, 'disconnect');
if (moment === 'before') await gone;
stopAtOnce();
if (moment === 'ready') {
  const stopped = stopRequest();
  process.send?.('ready');
  if (signal) process.kill(process.pid, signal);
  await stopped;
  process.exit(0);
}
if (moment === 'after') process.send?.('starting');
if (signal) process.kill(process.pid, signal);
