import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { useErrorText } from '../../data/error-text.ts';
import { useFormat } from '../../data/format.ts';
import { isResultUnknown } from '../../data/idempotency-key.ts';
import { showPending, showToast } from '../../data/toasts.ts';
import { useMessages } from '../../messages/index.ts';
import { type BulkChange, refreshChanged, undoChange } from './bulk-change.ts';
import type { BulkResult } from './bulk-result.ts';

type Reached = Pick<BulkResult, 'before' | 'uncertain' | 'targetChange'>;

/**
 * Returns a function that takes a change back. It says how many codes it could not change back and why, and offers to
 * try those again where that may help.
 */
export function useBulkUndo(): (change: BulkChange, reached: Reached) => Promise<void> {
  const { codes, rowSentence } = useMessages();
  const { bulk } = codes;
  const format = useFormat();
  const errorText = useErrorText();
  return async function undo(change, reached) {
    const { before, uncertain, targetChange } = reached;
    const hide = showPending(bulk.undoing);
    const undone = await undoChange(change, reached, bulk.changedSince);
    hide();
    const missed = before.length + uncertain.length - undone.changed - undone.unchanged;
    if (missed === 0) showToast(bulk.undone);
    else {
      const why =
        undone.error === undefined
          ? rowSentence(undone.failures[0]?.message ?? '') || bulk.notFound
          : errorText(undone.error);
      const settled = new Set([...undone.before, ...undone.failures.map(({ code }) => code)]);
      const rest = (codes: readonly Code[]) => codes.filter((code) => !settled.has(code));
      showToast(`${bulk.notUndone(missed, format.number(missed))} ${why}`, {
        kind: 'failed',
        ...(isResultUnknown(undone.error) && {
          retry: () => void undo(change, { before: rest(before), uncertain: rest(uncertain), targetChange }),
        }),
      });
    }
    await refreshChanged(change);
  };
}
