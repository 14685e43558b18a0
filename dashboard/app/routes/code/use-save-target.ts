import { useMutation } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { Target } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { errorInfo, reasonOf } from '../../data/error-reason.ts';
import { isResultUnknown } from '../../data/idempotency-key.ts';
import { refreshTarget } from '../../data/refresh-target.ts';
import { useSession } from '../../data/session.ts';
import { showToast } from '../../data/toasts.ts';
import { useMessages } from '../../messages/index.ts';
import { policyOf, type TargetDraft } from './policy-draft.ts';
import { targets, useRollBack, versionAfterLostAnswer } from './target-changes.ts';

interface SaveTargetOptions {
  readonly id: string;
  /** What the form begins with. */
  readonly target: Target;
  readonly onSaved: (draft: TargetDraft) => void;
  /** Not called if another person has changed the target: no field is wrong then. */
  readonly onFailed: () => void;
}

interface SaveTarget {
  readonly save: (draft: TargetDraft) => Promise<void>;
  readonly isPending: boolean;
  /**
   * Why the last try failed: TARGET_CHANGED if another person has changed the target. The next try replaces their
   * version.
   */
  readonly error: Error | null;
  readonly reset: () => void;
}

/** Saves a target that is being edited, as one version, unless another person has changed it. */
export function useSaveTarget({ id, target, onSaved, onFailed }: SaveTargetOptions): SaveTarget {
  const { form } = useMessages().target;
  const { email } = useSession();
  const rollBack = useRollBack(id);
  // The version that saving replaces: the one that the form began with, or another person's that the notice told of.
  const [replaced, setReplaced] = useState(target.version);
  // Whether an earlier call may have saved the target although its answer was lost.
  const mayBeSaved = useRef(false);
  const { mutateAsync, isPending, error, reset } = useMutation({
    mutationFn: async (draft: TargetDraft) =>
      targets.setTarget({
        id,
        targetUrl: draft.url.trim(),
        policy: policyOf(draft),
        note: draft.note.trim(),
        expectedVersion: mayBeSaved.current ? await versionAfterLostAnswer(id, replaced, email) : replaced,
      }),
  });
  const save = async (draft: TargetDraft) => {
    try {
      const { target: saved } = await mutateAsync(draft);
      const version = saved?.version ?? replaced;
      mayBeSaved.current = false;
      setReplaced(version);
      onSaved(draft);
      await refreshTarget();
      if (version === replaced) return showToast(form.unchanged);
      showToast(form.saved(version), { undo: () => void rollBack(replaced, version) });
    } catch (error) {
      if (isResultUnknown(error)) {
        mayBeSaved.current = true;
        // What is shown below and after Cancel may be the version before.
        void refreshTarget();
      }
      if (reasonOf(error) !== 'TARGET_CHANGED') return onFailed();
      setReplaced(Number(errorInfo(error)?.metadata.version));
      // The history below shows the other change.
      await refreshTarget();
    }
  };
  return { save, isPending, error, reset };
}
