import { createClient } from '@connectrpc/connect';
import { TargetsService } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { isResultUnknown } from '../../data/idempotency-key.ts';
import { refreshTarget } from '../../data/refresh-target.ts';
import { useSession } from '../../data/session.ts';
import { showToast } from '../../data/toasts.ts';
import { transport } from '../../data/transport.ts';
import { useUndo } from '../../data/use-undo.ts';
import { useMessages } from '../../messages/index.ts';

export const targets = createClient(TargetsService, transport);

/**
 * The version that a change is to expect when it is sent again because its answer was lost: `replaced`, or the next one
 * if that is by the same person, so that the earlier call has made it. Sending it again then changes nothing.
 */
export async function versionAfterLostAnswer(id: string, replaced: number, author: string): Promise<number> {
  const { target } = await targets.getTarget({ id });
  return target?.version === replaced + 1 && target.author === author ? target.version : replaced;
}

/**
 * Returns a function that sets the target of a code to that of an earlier version, unless another person has changed it
 * since version `current`, and resolves once what is shown of the target has been loaded again. It can be undone, which
 * is a roll-back to that version.
 */
export function useRollBack(id: string): (version: number, current: number) => Promise<void> {
  const { target: texts } = useMessages();
  const { email } = useSession();
  const undo = useUndo();
  const rollBack = (version: number, current: number): Promise<void> => {
    let isRepeated = false;
    return undo(async () => {
      try {
        const expectedVersion = isRepeated ? await versionAfterLostAnswer(id, current, email) : current;
        const { target } = await targets.rollBackTarget({ id, version, expectedVersion });
        const reached = target?.version ?? current;
        if (reached === current) showToast(texts.form.unchanged);
        else showToast(texts.history.rolledBack(version), { undo: () => void rollBack(current, reached) });
        await refreshTarget();
      } catch (error) {
        isRepeated ||= isResultUnknown(error);
        void refreshTarget();
        throw error;
      }
    });
  };
  return rollBack;
}
