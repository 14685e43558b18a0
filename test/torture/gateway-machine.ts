import { join } from 'node:path';
import { childrenOf } from '../faults/visitors.ts';
import { type Disk, fill, killUsers } from './disk.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { PowerCutDisk } from './power-cut.ts';
import type { Supervised } from './supervised.ts';

/** A gateway and its simulated machine. */
export interface Gateway {
  readonly index: number;
  /** The base URL of REST and scans. */
  readonly url: string;
  readonly process: Supervised;
  /** `DATA_DIR`. */
  readonly folder: string;
  /** Process ids of its children that run this program. */
  children(program: 'worker' | 'carrier'): Promise<number[]>;
  /** Fills its disk until the returned function is called; undefined if it has no disk of its own. */
  fillDisk(): Promise<(() => Promise<void>) | undefined>;
  /** Cuts the power of its machine until `restore` is called. Requires a `PowerCutDisk`. */
  cutPower(): Promise<{ readonly cutAt: number; restore(): void }>;
}

export interface GatewayOptions {
  readonly index: number;
  readonly url: string;
  /** Undefined if this process may not mount one; its data is then in `fallbackFolder`. */
  readonly disk: Disk | undefined;
  readonly fallbackFolder: string;
  /** Starts the gateway's main process. */
  start(name: string, program: string, env: { readonly DATA_DIR: string }): Supervised;
}

export function startGateway({ index, url, disk, fallbackFolder, start }: GatewayOptions): Gateway {
  const folder = join(disk?.path ?? fallbackFolder, `data-${index}`);
  const supervised = start(`gateway ${index}`, 'gateway/main.ts', { DATA_DIR: folder });
  // A disk that is being filled is in use and can't be unmounted.
  const withDisk = oneAtATime();
  return {
    index,
    url,
    process: supervised,
    folder,
    async children(program) {
      const { pid } = await supervised.ready();
      return childrenOf({ pid }, `gateway/${program}.ts`);
    },
    async fillDisk() {
      if (!disk) return undefined;
      const empty = await withDisk(() => fill(disk));
      return () => withDisk(empty);
    },
    async cutPower() {
      if (!(disk instanceof PowerCutDisk)) throw new Error('The power of this gateway’s disk can’t be cut.');
      let cutAt = Number.POSITIVE_INFINITY;
      const restore = await supervised.powerOff(async () => {
        await killUsers(disk);
        cutAt = Math.min(cutAt, Date.now());
      });
      try {
        await withDisk(() => disk.cut());
      } catch (error) {
        restore();
        throw error;
      }
      return { cutAt, restore };
    },
  };
}
