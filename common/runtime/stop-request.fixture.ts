import { once } from 'node:events';
import { exitWithParent, stopRequest } from './stop-request.ts';

/** A process whose parent is gone `before` it calls `exitWithParent`, `after` that, or once it is `ready`. */
const [, , moment] = process.argv;
const gone = once(process, 'disconnect');
if (moment === 'before') await gone;
exitWithParent();
if (moment === 'ready') {
  const stopped = stopRequest();
  process.send?.('ready');
  await stopped;
  process.exit(0);
}
if (moment === 'after') process.send?.('starting');
setInterval(() => undefined, 1_000);
