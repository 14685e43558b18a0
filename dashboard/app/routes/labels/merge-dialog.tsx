import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { foldedName } from '../../../../common/codes/folded-name.ts';
import { Button } from '../../components/button.tsx';
import { ComboBox } from '../../components/combo-box.tsx';
import { Actions, Dialog } from '../../components/dialog.tsx';
import { Notice } from '../../components/page.tsx';
import { refreshCodes } from '../../data/code-lists.ts';
import { useErrorText } from '../../data/error-text.ts';
import { useFormat } from '../../data/format.ts';
import { showToast } from '../../data/toasts.ts';
import { useIsMounted } from '../../data/use-is-mounted.ts';
import { useMessages } from '../../messages/index.ts';
import { type Label, type LabelKind, merge } from './label-calls.ts';

interface MergeDialogProps {
  readonly kind: LabelKind;
  readonly label: Label;
  readonly labels: readonly Label[];
  /** The one to keep, if it is known already. */
  readonly into?: Label | undefined;
  readonly onClose: () => void;
}

/** Merges a folder or tag into another; shows beforehand what that does to the codes. */
export function MergeDialog({ kind, label, labels, into, onClose }: MergeDialogProps) {
  const { common, labels: texts } = useMessages();
  const format = useFormat();
  const errorText = useErrorText();
  const [text, setText] = useState(into?.name ?? '');
  const isMounted = useIsMounted();
  const others = labels.filter(({ id }) => id !== label.id);
  const kept = others.find(({ name }) => foldedName(name) === foldedName(text));
  const merging = useMutation({
    mutationFn: (target: Label) => merge(kind, label.id, target.id),
    onSettled: refreshCodes,
    onSuccess: (_done, target) => {
      showToast(texts.merged(label.name, target.name));
      if (isMounted()) onClose();
    },
  });
  const effect = kind === 'folder' ? texts.mergeFolderEffect : texts.mergeTagEffect;
  return (
    <Dialog title={texts.mergeTitle(label.name)} isOpen onClose={onClose}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (kept) merging.mutate(kept);
        }}
      >
        <ComboBox
          label={texts.mergeInto}
          value={text}
          onChange={setText}
          names={others.map(({ name }) => name)}
          error={text.trim() !== '' && !kept ? texts.problems.unknown : undefined}
          autoFocus
        />
        {kept && (
          <Notice look="warning">
            {effect(Number(label.codeCount), format.number(label.codeCount), label.name, kept.name)} {texts.cannotUndo}
          </Notice>
        )}
        {merging.isError && <Notice look="danger">{errorText(merging.error)}</Notice>}
        <Actions>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button type="submit" look="danger" isDisabled={!kept} isPending={merging.isPending}>
            {texts.mergeAction}
          </Button>
        </Actions>
      </form>
    </Dialog>
  );
}
