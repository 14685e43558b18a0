import { Confirm } from '../../components/confirm.tsx';
import { refreshCodes } from '../../data/code-lists.ts';
import { useErrorText } from '../../data/error-text.ts';
import { useFormat } from '../../data/format.ts';
import { showToast } from '../../data/toasts.ts';
import { useUndo } from '../../data/use-undo.ts';
import { useMessages } from '../../messages/index.ts';
import { type Label, type LabelKind, MAX_UNDONE, remove } from './label-calls.ts';

interface DeleteDialogProps {
  readonly kind: LabelKind;
  readonly label: Label;
  readonly onClose: () => void;
}

/** Deletes a folder or tag. Up to 1,000 codes can get it back; for more, its name must be typed. */
export function DeleteDialog({ kind, label, onClose }: DeleteDialogProps) {
  const { common, labels: texts } = useMessages();
  const format = useFormat();
  const errorText = useErrorText();
  const undo = useUndo();
  const isUndoable = label.codeCount <= MAX_UNDONE;
  const effect = kind === 'folder' ? texts.deleteFolderEffect : texts.deleteTagEffect;
  const confirm = async () => {
    try {
      const putBack = await remove(kind, label);
      const takeBack = async () => {
        try {
          const missed = (await putBack?.()) ?? 0;
          if (missed === 0) showToast(texts.restored(label.name));
          else showToast(texts.notRestored(missed, format.number(missed), label.name), { kind: 'failed' });
        } finally {
          void refreshCodes();
        }
      };
      showToast(texts.deleted(label.name), putBack && { undo: () => void undo(takeBack) });
    } catch (error) {
      showToast(errorText(error), { kind: 'failed' });
      throw error;
    } finally {
      void refreshCodes();
    }
  };
  return (
    <Confirm
      title={texts.deleteTitle(label.name)}
      isOpen
      onClose={onClose}
      action={common.delete}
      onConfirm={confirm}
      name={isUndoable ? undefined : label.name}
    >
      <p>{effect(Number(label.codeCount), format.number(label.codeCount))}</p>
      {label.codeCount > 0n && <p>{isUndoable ? texts.canUndo : texts.cannotUndo}</p>}
    </Confirm>
  );
}
