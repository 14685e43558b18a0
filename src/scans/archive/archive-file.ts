import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { failure } from '../../../common/contract/errors.ts';
import { createFolder } from '../../../common/runtime/create-folder.ts';
import { columnsOf } from '../../db/columns.ts';
import { ScanEntity } from '../entities.ts';

/**
 * Index of the account's column, in files of all versions: new columns come last. Splitting at commas is safe because
 * no value up to there contains a comma or quote, and none a line break.
 */
const ACCOUNT = 2;

/** The columns of `scans` as `copy` writes them to a file, times as ISO 8601. */
export const ARCHIVED_COLUMNS = columnsOf(ScanEntity)
  .map(({ name, type }) =>
    type === 'timestamptz' ? `to_char(${name} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${name}` : name,
  )
  .join(', ');

/** Writes compressed lines of CSV to a file that exists completely or not at all, even after a crash. */
export async function writeArchive(folder: string, name: string, lines: Readable, signal?: AbortSignal): Promise<void> {
  createFolder(folder, 0o700);
  await replace(folder, name, (output) => pipeline(lines, createGzip(), output, { signal }));
}

/**
 * Rewrites a file without the scans of an account (a UUID); returns the number of scans left. Fails with UNAVAILABLE
 * and a sentence for the operator if the disk refuses that.
 */
export async function removeAccount(
  folder: string,
  name: string,
  accountId: string,
  signal?: AbortSignal,
): Promise<number> {
  let lines = 0;
  const rewritten = replace(folder, name, (output) =>
    pipeline(
      createReadStream(join(folder, name)),
      createGunzip(),
      async function* (source: AsyncIterable<Buffer>) {
        for await (const text of wholeLines(source)) {
          const kept = text.split('\n').filter((line) => line !== '' && line.split(',')[ACCOUNT] !== accountId);
          lines += kept.length;
          if (kept.length > 0) yield Buffer.from(`${kept.join('\n')}\n`, 'latin1');
        }
      },
      createGzip(),
      output,
      { signal },
    ),
  );
  await rewritten.catch((error: Error) => {
    const sentence = `The archive ${join(folder, name)} can't be rewritten; that is tried again every hour: ${error.message}`;
    throw failure('UNAVAILABLE', sentence, {}, error);
  });
  // The first line is the header.
  return lines - 1;
}

async function* wholeLines(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of source) {
    // Keeps every byte of a label in UTF-8; all other values are ASCII.
    const text = rest + chunk.toString('latin1');
    const end = text.lastIndexOf('\n') + 1;
    rest = text.slice(end);
    if (end > 0) yield text.slice(0, end);
  }
  if (rest !== '') yield rest;
}

/** Writes a temporary file and renames it into place once it is on disk. */
async function replace(
  folder: string,
  name: string,
  write: (output: NodeJS.WritableStream) => Promise<void>,
): Promise<void> {
  const path = join(folder, name);
  try {
    await write(createWriteStream(`${path}.draft`, { mode: 0o600, flush: true }));
    await rename(`${path}.draft`, path);
  } catch (error) {
    // It has scans, and may have filled the disk.
    await rm(`${path}.draft`, { force: true });
    throw error;
  }
  const directory = await open(folder);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
