import { createClient } from '@connectrpc/connect';
import { type Code, CodesService } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { reasonOf } from './error-reason.ts';
import { transport } from './transport.ts';

/** Calls at a time: browsers open no more connections to one host. */
const CONCURRENCY = 6;

const client = createClient(CodesService, transport);

/** Reads codes as they are now, by id, for an undo that must not replace what has been changed since. Deleted ones are left out. */
export async function readCodes(ids: readonly string[]): Promise<ReadonlyMap<string, Code>> {
  const found = new Map<string, Code>();
  const waiting = ids.values();
  const read = async () => {
    for (const id of waiting) {
      try {
        const { code } = await client.getCode({ id });
        if (code) found.set(id, code);
      } catch (error) {
        if (reasonOf(error) !== 'NOT_FOUND') throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, read));
  return found;
}
