import { createClient } from '@connectrpc/connect';
import { createConnectQueryKey } from '@connectrpc/connect-query';
import { type Code, CodesService, type ListCodesResponse } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type CodesFilter, PAGE } from '../../data/code-lists.ts';
import { queryClient } from '../../data/queries.ts';
import { transport } from '../../data/transport.ts';
import type { Selection } from './selection.ts';

const client = createClient(CodesService, transport);

/**
 * The selected codes, page by page. Single ones come from the pages that are loaded, where they were selected; all that
 * match are read with cursors, which do not skip a code when the change takes those before it out of the list.
 */
export async function* selectedCodes(
  { all, ids }: Selection,
  filter: CodesFilter,
  signal: AbortSignal,
): AsyncGenerator<Code[]> {
  if (!all) {
    const found = loadedCodes().filter(({ id }) => ids.has(id));
    yield [...new Map(found.map((code) => [code.id, code])).values()];
    return;
  }
  let cursor: string | undefined;
  do {
    const input = { ...filter, limit: PAGE, ...(cursor !== undefined && { cursor }) };
    const page = await client.listCodes(input, { signal });
    yield page.codes.filter(({ id }) => !ids.has(id));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

function loadedCodes(): Code[] {
  const queryKey = createConnectQueryKey({ schema: CodesService.method.listCodes, cardinality: 'finite' });
  return queryClient.getQueriesData<ListCodesResponse>({ queryKey }).flatMap(([, page]) => page?.codes ?? []);
}
