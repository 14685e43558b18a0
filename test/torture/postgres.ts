import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LocalPostgres, startPostgres } from '../../local/postgres.ts';
import { childrenOf } from '../bench/process-tree.ts';
import { killUsers } from './disk.ts';
import { oneAtATime } from './one-at-a-time.ts';
import type { PowerCutDisk } from './power-cut.ts';
import type { Random } from './random.ts';

/** How long what is left of a killed one may stand in the way of the next, in ms. */
const START_MS = 60_000;

/** A real Postgres, which a fault may treat badly. */
export interface TorturedPostgres {
  /** The database as its owner, and as a gateway sees it, without anything between. */
  readonly url: string;
  readonly gatewayUrl: string;
  /** SIGKILL of its first process. The others see that and end. */
  kill(): Promise<void>;
  /** SIGKILL of a process that serves a connection: Postgres then ends all others and recovers. */
  killBackend(random: Random): Promise<void>;
  /** SIGSTOP of all its processes, until the function that it gives is called. */
  pause(): Promise<() => void>;
  /** An orderly end that does not wait for connections. */
  stop(): Promise<void>;
  /** Cuts the power of its machine. Only with a disk of its own. */
  cutPower(): Promise<void>;
  /** After `kill`, `stop` or `cutPower`; resolves when it answers. */
  start(): Promise<void>;
}

/** Starts it, with everything that it keeps in `folder`, on a `disk` of its own or on that of this machine. */
export async function startTorturedPostgres(folder: string, disk: PowerCutDisk | undefined): Promise<TorturedPostgres> {
  const settings = { max_connections: '200' };
  let running: LocalPostgres = await startPostgres({ folder, settings });
  const { url, gatewayUrl } = running;
  // On an unmounted disk a start would find no data, and make new ones.
  const withDisk = oneAtATime();
  /** 0 while it does not run: without children, and signals to it go to nobody. */
  const postmaster = async () => {
    const file = await readFile(join(folder, 'data', 'postmaster.pid'), 'latin1').catch(() => '0');
    return Number(file.split('\n', 1)[0]);
  };
  const signal = (pid: number, name: NodeJS.Signals) => {
    try {
      // 0 would be our own process group.
      if (pid > 0) process.kill(pid, name);
    } catch {
      // It has ended meanwhile.
    }
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
        if (!disk) throw new Error('The disk of Postgres can not lose power.');
        await killUsers(disk);
        await disk.cut();
      }),
    async start() {
      for (const end = Date.now() + START_MS; ; ) {
        try {
          running = await withDisk(() => startPostgres({ folder, settings }));
          break;
        } catch (error) {
          if (Date.now() > end) throw error;
          await sleep(500);
        }
      }
      if (running.url !== url) throw new Error('Postgres came back at another address.');
    },
  };
}
