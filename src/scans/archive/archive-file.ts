import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';

/** Where the account stands in a line, counted from 0; no value holds a comma, a quote or a line break. */
const ACCOUNT = 2;

/** What `copy` writes into a file: the columns of `scans`, times as ISO 8601. */
export const ARCHIVED_COLUMNS = `id, to_char(scanned_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as scanned_at,
   account_id, code_id, kind, rules, country, device, operating_system, browser, referrer, visitor`;

/** Writes lines of CSV, compressed, into a file that is there whole or not at all, however this ends. */
export async function writeArchive(folder: string, name: string, lines: Readable): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await replace(folder, name, (draft) => pipeline(lines, createGzip(), draft));
}

/** Rewrites a file without the scans of an account, a UUID; gives how many scans are left. */
export async function rewriteWithout(folder: string, name: string, accountId: string): Promise<number> {
  let lines = 0;
  await replace(folder, name, (draft) =>
    pipeline(
      createReadStream(join(folder, name)),
      createGunzip(),
      async function* (source: AsyncIterable<Buffer>) {
        for await (const text of wholeLines(source)) {
          const kept = text.split('\n').filter((line) => line !== '' && line.split(',')[ACCOUNT] !== accountId);
          lines += kept.length;
          if (kept.length > 0) yield `${kept.join('\n')}\n`;
        }
      },
      createGzip(),
      draft,
    ),
  );
  // The first line names the columns.
  return lines - 1;
}

async function* wholeLines(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of source) {
    // Nothing but ASCII: hosts are in their ASCII form, names come from lists.
    const text = rest + chunk.toString('latin1');
    const end = text.lastIndexOf('\n') + 1;
    rest = text.slice(end);
    if (end > 0) yield text.slice(0, end);
  }
  if (rest !== '') yield rest;
}

/** Writes beside the file, and takes its place once everything is on the disk. */
async function replace(
  folder: string,
  name: string,
  write: (draft: NodeJS.WritableStream) => Promise<void>,
): Promise<void> {
  const path = join(folder, name);
  await write(createWriteStream(`${path}.draft`, { mode: 0o600, flush: true }));
  await rename(`${path}.draft`, path);
  const directory = await open(folder);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
