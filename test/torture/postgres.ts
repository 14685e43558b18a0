import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LocalPostgres, startPostgres } from '../../local/postgres.ts';
import type { Random } from '../../local/sample/random.ts';
import { childrenOf } from '../bench/process-tree.ts';
import { fill, killUsers } from './disk.ts';
import { oneAtATime, untilReverted } from './one-at-a-time.ts';
import type { PowerCutDisk } from './power-cut.ts';

/** How long the remains of a killed server may prevent the next start, in ms. */
const START_MS = 60_000;

/** A real Postgres into which faults are injected. */
export interface TorturedPostgres {
  /** The database for its owner and for gateways, without a proxy. */
  readonly url: string;
  readonly gatewayUrl: string;
  /** SIGKILL of the postmaster. The other processes detect that and exit. */
  kill(): Promise<void>;
  /** SIGKILL of a process that serves a connection: Postgres then ends all others and recovers. */
  killBackend(random: Random): Promise<void>;
  /** SIGSTOP of all its processes, until the returned function is called. */
  pause(): Promise<() => void>;
  /** An orderly shutdown that does not wait for connections. */
  stop(): Promise<void>;
  /** Cuts the power of its machine. Requires a disk of its own. */
  cutPower(): Promise<void>;
  /**
   * Fills its disk until the returned function is called, which starts it if it has ended. Requires a disk of its own.
   */
  fillDisk(): Promise<() => Promise<void>>;
  /**
   * Lets its disk refuse everything until the returned function is called, which restarts it. Requires a disk of its
   * own.
   */
  breakDisk(): Promise<() => Promise<void>>;
  /** After `kill`, `stop` or `cutPower`; resolves when it answers. */
  start(): Promise<void>;
}

/** Starts Postgres with its data in `folder`, which is on `disk` if that is given. */
export async function startTorturedPostgres(folder: string, disk: PowerCutDisk | undefined): Promise<TorturedPostgres> {
  const settings = { max_connections: '200' };
  let running: LocalPostgres = await startPostgres({ folder, settings });
  const { url, gatewayUrl } = running;
  // On an unmounted disk, a start would find no data and initialise a new database.
  const withDisk = oneAtATime();
  /** The postmaster's process id; 0 while it does not run. */
  const postmaster = async () => {
    const file = await readFile(join(folder, 'data', 'postmaster.pid'), 'latin1').catch(() => '0');
    return Number(file.split('\n', 1)[0]);
  };
  const signal = (pid: number, name: NodeJS.Signals) => {
    try {
      // 0 would signal this process's own group.
      if (pid > 0) process.kill(pid, name);
    } catch {
      // The process has ended meanwhile.
    }
  };
  const start = async () => {
    for (const end = Date.now() + START_MS; ; ) {
      try {
        running = await withDisk(() => startPostgres({ folder, settings }));
        break;
      } catch (error) {
        if (Date.now() > end) throw error;
        await sleep(500);
      }
    }
    if (running.url !== url) throw new Error('Postgres restarted at another address.');
  };
  /** A fault of the disk, after which Postgres may have to be started. */
  const withoutDisk = async (inject: (disk: PowerCutDisk) => Promise<() => Promise<void>>) => {
    if (!disk) throw new Error('Postgres has no disk of its own.');
    const heal = await untilReverted(withDisk, () => inject(disk));
    return async () => {
      await heal();
      await start();
    };
  };
  return {
    url,
    gatewayUrl,
    async kill() {
      signal(await postmaster(), 'SIGKILL');
    },
    async killBackend(random) {
      const backends: number[] = [];
      for (const pid of childrenOf(await postmaster())) {
        const line = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
        if (/^postgres: signpost/.test(line)) backends.push(pid);
      }
      if (backends.length > 0) signal(random.oneOf(backends), 'SIGKILL');
    },
    async pause() {
      const first = await postmaster();
      const all = [first, ...childrenOf(first)];
      for (const pid of all) signal(pid, 'SIGSTOP');
      return () => {
        for (const pid of all) signal(pid, 'SIGCONT');
      };
    },
    stop: () => running.stop(),
    cutPower: () =>
      withDisk(async () => {
        if (!disk) throw new Error('The power of Postgres’s disk can’t be cut.');
        await killUsers(disk);
        await disk.cut();
      }),
    fillDisk: () => withoutDisk(fill),
    breakDisk: () =>
      withoutDisk(async (broken) => {
        await broken.shutDown();
        return async () => {
          await killUsers(broken);
          await broken.cut();
        };
      }),
    start,
  };
}
