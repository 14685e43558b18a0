import { Code as ConnectCode, ConnectError, createClient } from '@connectrpc/connect';
import { LONG_PAGE_LIMIT } from '../../../../common/contract/ranges.ts';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { TargetRowStatus, TargetsService } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { isResultUnknown } from '../../data/idempotency-key.ts';
import { transport } from '../../data/transport.ts';
import type { Tally } from './bulk-result.ts';

export interface RunOptions {
  readonly onProgress: (done: number) => void;
  readonly signal: AbortSignal;
}

const targetsClient = createClient(TargetsService, transport);

/**
 * Changes targets in the background and follows it. If that fails, codes whose results have not been read may be
 * changed, too.
 */
export async function retarget(
  codes: readonly Code[],
  urlOf: (code: Code) => string,
  note: string,
  tally: Tally,
  options: RunOptions,
): Promise<void> {
  if (codes.length === 0) return;
  const rows = codes.map((code) => ({ code: { case: 'id', value: code.id } as const, targetUrl: urlOf(code) }));
  let id: string | undefined;
  let read = 0;
  const pending: Code[] = [];
  try {
    id = (await targetsClient.changeTargets({ rows, note })).change?.id ?? '';
    tally.started(id);
    await follow(id, tally, options);
    let cursor = '';
    do {
      const page = await targetsClient.getTargetChange({ id, limit: LONG_PAGE_LIMIT.most, cursor });
      for (const { position, status, reason } of page.rows) {
        const code = codes[position];
        read = position + 1;
        if (!code) continue;
        if (status === TargetRowStatus.PENDING) pending.push(code);
        else if (status === TargetRowStatus.UNCHANGED) tally.wasUnchanged();
        else if (status === TargetRowStatus.FAILED) tally.failed(code, reason);
        else tally.didChange(code);
      }
      cursor = page.nextCursor;
    } while (cursor !== '');
    tally.arePending(pending);
  } catch (error) {
    if (id !== undefined || isResultUnknown(error)) tally.mayHaveChanged([...pending, ...codes.slice(read)]);
    throw error;
  }
}

/** Reports how far a change of targets is until it ends. */
async function follow(id: string, tally: Tally, { onProgress, signal }: RunOptions): Promise<void> {
  try {
    for await (const { change } of targetsClient.watchTargetChange({ id }, { signal })) {
      if (change?.counts) onProgress(change.counts.total - change.counts.pending);
    }
  } catch (error) {
    // What ends the watching does not end the change, which continues in the background.
    if (!isAborted(signal, error)) tally.broke(error);
  }
}

/**
 * Waits until a change of targets has ended: rows that are not applied yet would come after an undo. Without its id,
 * waits for all changes of the account.
 */
export async function retargetEnds(id: string | undefined): Promise<void> {
  const end = async (id: string) => {
    for await (const _ of targetsClient.watchTargetChange({ id }));
  };
  if (id !== undefined) return end(id);
  let cursor = '';
  do {
    const { changes, nextCursor } = await targetsClient.listTargetChanges({ unfinished: true, limit: 100, cursor });
    for (const { id } of changes) await end(id);
    cursor = nextCursor;
  } while (cursor !== '');
}

/** Whether a call failed because it was aborted. Calls that change codes never are: they fail for another reason. */
export function isAborted(signal: AbortSignal, error: unknown): boolean {
  return signal.aborted && ConnectError.from(error).code === ConnectCode.Canceled;
}
