import type { UnknownField } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { fairQueue } from '../../../common/queues/fair-queue.ts';
import { Thread } from '../../../common/runtime/thread.ts';
import type { BodyOwner } from '../endpoint.ts';
import { Refusal } from '../refusal.ts';
import { type BatchBody, type ParsedBatch, parseBatch } from './parse-batch.ts';

/** Parsing this much takes 0.2 ms, or 10 ms if every row has a field of a wrong type: 64 KiB of those took 80 ms. */
const LARGE_BYTES = 8 * 1024;

/** Bodies of all accounts that may wait for the thread. The memory for bodies is usually used up before. */
const MAX_WAITING = 256;

const thread = new Thread<Uint8Array, ParsedBatch>(new URL('./batch-body.thread.ts', import.meta.url), 'reads batches');

/** One at a time, so that a waiting body is not in the thread yet and can still be dropped. */
const queue = fairQueue({ concurrency: 1, maxWaiting: MAX_WAITING, items: 'batches' });

/**
 * Parses the body of a batch, a large one in a worker thread: parsing 3.5 MB of JSON, checking 25,000 rows and
 * serializing them as protobuf takes a good part of a second, during which scans would wait. Accounts take turns there.
 * The body's memory is transferred. Throws a Refusal.
 */
export async function readBatch(raw: Buffer, { account, signal }: BodyOwner): Promise<BatchBody> {
  const read =
    raw.length < LARGE_BYTES
      ? parseBatch(raw)
      : await queue(account, signal, () => thread.run(raw, [raw.buffer as ArrayBuffer]));
  if ('reason' in read) throw new Refusal(read.reason, read.sentence, read.rowCount);
  return read;
}

/**
 * Wraps serialized rows as an unknown field, which a message writes unchanged, so that serializing the whole batch only
 * copies bytes. The field consists of its tag, which is that of the first row, and all bytes after it.
 */
export function preserialized(rows: Uint8Array): UnknownField {
  const tag = new BinaryReader(rows);
  const [no, wireType] = tag.tag();
  return { no, wireType, data: rows.subarray(tag.pos) };
}
