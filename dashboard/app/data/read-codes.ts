import { createClient } from '@connectrpc/connect';
import { PAGE_LIMIT } from '../../../common/contract/ranges.ts';
import { type Code, CodesService } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { transport } from './transport.ts';

/** Codes per call: the most that the core returns. */
const PER_CALL = PAGE_LIMIT.most;

/** Calls at a time: browsers open no more connections to one host. */
const CONCURRENCY = 6;

const client = createClient(CodesService, transport);

/**
 * Reads codes as they are now, by id, for an undo that must not replace what has been changed since. Deleted ones are
 * left out.
 */
export async function readCodes(ids: readonly string[]): Promise<ReadonlyMap<string, Code>> {
  const found = new Map<string, Code>();
  let next = 0;
  const read = async () => {
    while (next < ids.length) {
      const asked = ids.slice(next, next + PER_CALL);
      next += PER_CALL;
      const { codes } = await client.batchGetCodes({ ids: asked });
      for (const code of codes) found.set(code.id, code);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, read));
  return found;
}
