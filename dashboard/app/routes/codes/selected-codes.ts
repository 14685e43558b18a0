import { createClient } from '@connectrpc/connect';
import { createConnectQueryKey } from '@connectrpc/connect-query';
import { type Code, CodesService, type ListCodesResponse } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type CodesFilter, PAGE } from '../../data/code-lists.ts';
import { queryClient } from '../../data/queries.ts';
import { transport } from '../../data/transport.ts';
import type { Selection } from './selection.ts';

const client = createClient(CodesService, transport);

/**
 * The selected codes, page by page. Single ones are as they were when they were selected, or as a list has shown them
 * since; all that match are read with cursors, which do not skip a code when the change takes those before it out of
 * the list.
 */
export async function* selectedCodes(
  { all, codes }: Selection,
  filter: CodesFilter,
  signal: AbortSignal,
): AsyncGenerator<Code[]> {
  if (!all) {
    const latest = latestOf(codes);
    for (let at = 0; at < latest.length; at += PAGE) yield latest.slice(at, at + PAGE);
    return;
  }
  let cursor: string | undefined;
  do {
    const input = { ...filter, limit: PAGE, ...(cursor !== undefined && { cursor }) };
    const page = await client.listCodes(input, { signal });
    yield page.codes.filter(({ id }) => !codes.has(id));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

/** The codes in their latest version that is loaded: an undo gives them back what they had last. */
function latestOf(codes: Selection['codes']): Code[] {
  const latest = new Map(codes);
  const queryKey = createConnectQueryKey({ schema: CodesService.method.listCodes, cardinality: 'finite' });
  for (const [, page] of queryClient.getQueriesData<ListCodesResponse>({ queryKey })) {
    for (const code of page?.codes ?? []) {
      const held = latest.get(code.id);
      if (held && isLater(code, held)) latest.set(code.id, code);
    }
  }
  return [...latest.values()];
}

/** Scans do not raise the version of a code. */
function isLater(code: Code, held: Code): boolean {
  return code.version === held.version ? code.scanCount > held.scanCount : code.version > held.version;
}
