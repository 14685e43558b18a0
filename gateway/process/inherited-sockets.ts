import { OperatorError } from '../../common/runtime/operator-error.ts';
import { type Port, sharedByWorkers } from './port.ts';

/** The first descriptor that systemd passes; source: sd_listen_fds(3). */
const FIRST_DESCRIPTOR = 3;

/**
 * The listening sockets that systemd has opened for this process (`LISTEN_FDS`); undefined if it has opened none. They
 * stay open while a gateway is replaced: connections wait, and the next gateway accepts them.
 */
export function inheritedPort(number: number, workers: number, env: NodeJS.ProcessEnv): Port | undefined {
  // Otherwise the variables were meant for an ancestor of this process.
  if (Number(env.LISTEN_PID) !== process.pid || env.LISTEN_FDS === undefined) return undefined;
  const count = Number(env.LISTEN_FDS);
  if (!Number.isInteger(count) || count < 1) throw new OperatorError('LISTEN_FDS must be the number of sockets.');
  return {
    number,
    isInherited: true,
    descriptors: sharedByWorkers(
      Array.from({ length: count }, (_, index) => FIRST_DESCRIPTOR + index),
      workers,
    ),
    // Closing them here would change nothing: systemd has them, too.
    close() {},
  };
}
