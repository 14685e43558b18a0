import { createConnectQueryKey } from '@connectrpc/connect-query';
import { TargetsService } from '../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { refreshCodes } from './code-lists.ts';
import { queryClient } from './queries.ts';

/** Reads again what depends on a code's target. */
export async function refreshTarget(): Promise<void> {
  const queryKey = createConnectQueryKey({ schema: TargetsService, cardinality: undefined });
  await Promise.all([refreshCodes(), queryClient.invalidateQueries({ queryKey })]);
}
