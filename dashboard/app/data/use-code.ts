import { useQuery } from '@connectrpc/connect-query';
import { type Code, CodeState, CodesService } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { reasonOf } from './error-reason.ts';

/** One code by its id, also if it is deleted: only lists have such codes. */
export function useCode(id: string): { code: Code | undefined; error: unknown; retry: () => void } {
  const live = useQuery(CodesService.method.getCode, { id });
  const isMissing = live.error !== null && reasonOf(live.error) === 'NOT_FOUND';
  const deleted = useQuery(
    CodesService.method.listCodes,
    { search: id, state: CodeState.DELETED, limit: 1 },
    { enabled: isMissing },
  );
  // A query without data forgets while it is repeated that the code was missing.
  const isGone = isMissing || live.data === undefined;
  const gone = isGone ? deleted.data?.codes.find((code) => code.id === id) : undefined;
  // While it is deleted or restored, the code stays as it was: the page may have a form with what was entered.
  const found = gone ?? live.data?.code;
  const isDone = isMissing ? deleted.data !== undefined || deleted.error !== null : true;
  return {
    code: found,
    error: !found && isDone ? (deleted.error ?? live.error) : null,
    retry: () => void live.refetch(),
  };
}
