import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { foldedName } from '../../../../common/codes/folded-name.ts';
import { Button } from '../../components/button.tsx';
import { Actions, Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { folderProblem } from '../../components/filing-fields.tsx';
import { Notice } from '../../components/page.tsx';
import { refreshCodes } from '../../data/code-lists.ts';
import { reasonOf } from '../../data/error-reason.ts';
import { useErrorText } from '../../data/error-text.ts';
import { showToast } from '../../data/toasts.ts';
import { useIsMounted } from '../../data/use-is-mounted.ts';
import { useOneAtATime } from '../../data/use-one-at-a-time.ts';
import { useUndo } from '../../data/use-undo.ts';
import { useMessages } from '../../messages/index.ts';
import { type Label, type LabelKind, rename, undoRename } from './label-calls.ts';

interface RenameDialogProps {
  readonly kind: LabelKind;
  readonly label: Label;
  /** All of this kind, among which another may have the name. */
  readonly labels: readonly Label[];
  readonly onClose: () => void;
  /** Offers to merge with the one that has the name. */
  readonly onMerge: (into: Label) => void;
}

/** Renames a folder or tag, which can be undone; a name that is taken leads to merging the two. */
export function RenameDialog({ kind, label, labels, onClose, onMerge }: RenameDialogProps) {
  const { common, labels: texts } = useMessages();
  const errorText = useErrorText();
  const undo = useUndo();
  const isMounted = useIsMounted();
  const [name, setName] = useState(label.name);
  const renaming = useMutation({
    mutationFn: (wanted: string) => rename(kind, label.id, wanted),
    onSettled: refreshCodes,
  });
  const oneAtATime = useOneAtATime();
  const wanted = name.trim();
  const other = labels.find(({ id, name }) => id !== label.id && foldedName(name) === foldedName(wanted));
  const problem = wanted === '' ? 'missing' : folderProblem(wanted);
  const isReservedForFolders = problem === 'reserved' && kind === 'tag';
  const submit = async () => {
    if (wanted !== label.name) {
      try {
        await renaming.mutateAsync(wanted);
      } catch {
        // Shown in the dialog, which keeps what was typed.
        return;
      }
      const takeBack = async () => {
        try {
          const isUndone = await undoRename(kind, label.id, wanted, label.name);
          if (!isUndone) showToast(texts.notUndone(wanted), { kind: 'failed' });
        } finally {
          void refreshCodes();
        }
      };
      showToast(texts.renamed(wanted), { undo: () => void undo(takeBack) });
    }
    if (isMounted()) onClose();
  };
  return (
    <Dialog title={texts.renameTitle(label.name)} isOpen onClose={onClose}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (!other && (!problem || isReservedForFolders)) oneAtATime(submit);
        }}
      >
        <Field
          label={common.name}
          value={name}
          onChange={setName}
          error={problem && !isReservedForFolders ? texts.problems[problem] : undefined}
          autoFocus
          autoComplete="off"
        />
        {other && (
          <Notice look="warning" action={<Button onPress={() => onMerge(other)}>{texts.mergeWith(other.name)}</Button>}>
            {texts.taken(other.name)}
          </Notice>
        )}
        {renaming.isError && !other && (
          <Notice look="danger">
            {reasonOf(renaming.error) === 'ALREADY_EXISTS' ? texts.taken(wanted) : errorText(renaming.error)}
          </Notice>
        )}
        <Actions>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button type="submit" look="primary" isDisabled={other !== undefined} isPending={renaming.isPending}>
            {texts.rename}
          </Button>
        </Actions>
      </form>
    </Dialog>
  );
}
