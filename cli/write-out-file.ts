import { randomBytes } from 'node:crypto';
import { createWriteStream, fstatSync, rmSync } from 'node:fs';
import { realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { UsageError } from './core.ts';

type Content = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/**
 * Writes the file that the option `--out` names, or replaces it. It is written under a temporary name first, so that a
 * failure leaves no partial file under `path`. A device or named pipe is written to directly: renaming a file to its
 * path would replace it, even `/dev/null`. Of a symbolic link, the file that it leads to is replaced. Returns whether
 * the result of the command may be printed: not if it would follow the content, on standard output.
 */
export async function writeOutFile(path: string, content: Content): Promise<boolean> {
  const existing = await stat(path).catch(() => undefined);
  const own = fstatSync(process.stdout.fd);
  try {
    if (existing === undefined || existing.isFile()) {
      await replaceFile(await realpath(path).catch(() => path), content);
    } else await pipeline(content, createWriteStream(path));
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    const sentence = `--out: ${path} can't be written (${code}).`;
    if (syscall === 'open' || syscall === 'rename') throw new UsageError(sentence, { cause: error });
    if (syscall === 'write') throw new OperatorError(sentence, { cause: error });
    throw error;
  }
  return existing?.ino !== own.ino || existing.dev !== own.dev;
}

/** The temporary name is of this process alone, and the file is removed if a signal ends the process. */
async function replaceFile(path: string, content: Content): Promise<void> {
  const part = join(dirname(path), `.signpost-${randomBytes(8).toString('hex')}.part`);
  const end = (signal: NodeJS.Signals) => {
    rmSync(part, { force: true });
    // There is no handler any more: the signal ends the process.
    process.kill(process.pid, signal);
  };
  for (const signal of SIGNALS) process.once(signal, end);
  try {
    await pipeline(content, createWriteStream(part, { flags: 'wx' }));
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  } finally {
    for (const signal of SIGNALS) process.off(signal, end);
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
