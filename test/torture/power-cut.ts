import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** `EXT4_IOC_SHUTDOWN` with `EXT4_GOING_FLAGS_NOLOGFLUSH`: not even the journal is written. */
const SHUT_DOWN = `open(my $folder, '<', $ARGV[0]) or die "open: $!";
my $flags = pack('L', 2);
ioctl($folder, 0x8004587d, $flags) or die "ioctl: $!";`;

/** How long killed processes may take to release the disk, in ms: a Postgres with 100 connections took 300. */
const RELEASE_TIMEOUT_MS = 30_000;
const RETRY_MS = 50;

/**
 * A disk that a power cut leaves in the same state as a real one: synced data is there, and of the rest only what the
 * system happened to have written. It is an ext4 file system in a file, shut down by the ioctl that the tests of
 * Linux's file systems use for this (`godown` of xfstests, fs/ext4/ioctl.c): from then on it writes nothing, and the
 * next mount replays its journal. What it had written to its device counts as on disk, even without a flush.
 *
 * Needs root, loop devices and ext4; see `whyNoPowerCuts`.
 */
export class PowerCutDisk {
  /** The mount point, the same after a cut. */
  readonly path: string;
  /**
   * Runs Node like `process.execPath`, but hides the boot id, which does not change at a simulated power cut. LMDB
   * relies on pages that the system has not written yet while the boot id is the same. A test sets `process.execPath`
   * to this before it starts processes that have an LMDB table on any such disk.
   */
  readonly node: string;
  readonly #folder: string;
  readonly #image: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#image = join(folder, 'image');
    this.path = join(folder, 'disk');
    this.node = join(folder, 'node');
  }

  /** Creates an empty disk. */
  static async create(sizeInMiB: number): Promise<PowerCutDisk> {
    const disk = new PowerCutDisk(await mkdtemp(join(tmpdir(), 'signpost-power-')));
    try {
      await disk.#make(sizeInMiB);
    } catch (error) {
      await disk.#remove();
      throw error;
    }
    return disk;
  }

  async #make(sizeInMiB: number): Promise<void> {
    const image = await open(this.#image, 'w', 0o600);
    await image.truncate(sizeInMiB * 1024 * 1024);
    await image.close();
    await run('mkfs.ext4', ['-q', '-F', this.#image]);
    // Unmounts in this folder also apply to programs started with `node`, which would otherwise keep the disk in use.
    await run('mount', ['--bind', '--make-shared', this.#folder, this.#folder]);
    await mkdir(this.path);
    const hidden = 'mount --bind /dev/null /proc/sys/kernel/random/boot_id && exec "$0" "$@"';
    const started = `exec unshare --mount --propagation slave sh -c '${hidden}' '${process.execPath}' "$@"`;
    await writeFile(this.node, `#!/bin/sh\n${started}\n`, { mode: 0o700 });
    await this.#mount();
  }

  /** Makes all reads of what is not in memory, and all writes, fail until `cut`. */
  async shutDown(): Promise<void> {
    await run('perl', ['-e', SHUT_DOWN, this.path]);
  }

  /**
   * Cuts the power and restores it. Kill all processes that use the disk first (SIGKILL): as long as one of them
   * lives, the disk can't be unmounted, and this rejects after half a minute.
   */
  async cut(): Promise<void> {
    await this.shutDown();
    await this.#unmount();
    await this.#mount();
  }

  /** Removes the disk, which no process may be using. */
  async close(): Promise<void> {
    await this.#unmount();
    await this.#remove();
  }

  async #remove(): Promise<void> {
    await run('umount', ['--quiet', this.#folder]).catch(() => undefined);
    await rm(this.#folder, { recursive: true });
  }

  async #mount(): Promise<void> {
    await run('mount', ['-t', 'ext4', '-o', 'loop', this.#image, this.path]);
  }

  /** Waits until the loop device is gone too: one still in use would show data that the cut has lost. */
  async #unmount(): Promise<void> {
    const deadline = performance.now() + RELEASE_TIMEOUT_MS;
    const retried = async <Result>(attempt: () => Promise<Result>): Promise<Result> => {
      for (;;) {
        try {
          return await attempt();
        } catch (error) {
          if (performance.now() > deadline) throw error;
          await sleep(RETRY_MS);
        }
      }
    };
    await retried(() => run('umount', [this.path]));
    await retried(async () => {
      const { stdout } = await run('losetup', ['--associated', this.#image]);
      if (stdout !== '') throw new Error(`The disk is unmounted but still in use: ${stdout.trim()}`);
    });
  }
}

/**
 * A sentence on why this machine can't have such a disk; undefined if it can. With `CI=true` it throws instead.
 */
export async function whyNoPowerCuts(): Promise<string | undefined> {
  try {
    const disk = await PowerCutDisk.create(8);
    await disk.cut().finally(() => disk.close());
    return undefined;
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    const reason = (stderr?.trim() || message).replaceAll(/\s*\n\s*/g, ' ');
    const sentence = `Power cuts need root, loop devices, ext4 and perl: ${reason}`;
    if (process.env.CI) throw new Error(sentence, { cause: error });
    return sentence;
  }
}
