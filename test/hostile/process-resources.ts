import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'vitest';

/** Options with which `expectReturned` measures every process after garbage collection. */
export const COLLECTING = {
  NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, '../harness/collect-garbage.ts')).href}`,
};

/**
 * Memory that processes may keep after a test, in bytes: compiled code, and pages shared with other data. Up to 131 MB
 * were measured; without limits it was 600 MB.
 */
const MEMORY_MARGIN = 250 * 1024 * 1024;

/** Total resources of processes. */
export interface Figures {
  readonly descriptors: number;
  readonly sockets: number;
  /** Resident memory, in bytes. */
  readonly memory: number;
}

export async function figuresOf(pids: readonly number[]): Promise<Figures> {
  const files = (await Promise.all(pids.map(filesOf))).flat();
  const memory = await Promise.all(pids.map(memoryOf));
  return {
    descriptors: files.length,
    sockets: files.filter((file) => file.startsWith('socket:')).length,
    memory: memory.reduce((sum, bytes) => sum + bytes, 0),
  };
}

/** The target of each descriptor of a process. */
async function filesOf(pid: number): Promise<string[]> {
  const files = await readdir(`/proc/${pid}/fd`);
  return Promise.all(files.map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => '')));
}

async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'latin1');
  return Number(/VmRSS:\s*(\d+)/.exec(status)?.[1]) * 1_024;
}

/** `spare`: connections to other parts of Signpost whose number may change meanwhile. */
export async function expectReturned(pids: readonly number[], before: Figures, spare: number): Promise<void> {
  const now = () => figuresOf(pids);
  const patience = { timeout: 20_000, interval: 200 };
  await expect.poll(async () => (await now()).sockets, patience).toBeLessThanOrEqual(before.sockets + spare);
  await expect.poll(async () => (await now()).descriptors, patience).toBeLessThanOrEqual(before.descriptors + spare);
  const collected = async () => {
    for (const pid of pids) process.kill(pid, 'SIGUSR2');
    return (await now()).memory;
  };
  await expect.poll(collected, { ...patience, interval: 500 }).toBeLessThanOrEqual(before.memory + MEMORY_MARGIN);
}
