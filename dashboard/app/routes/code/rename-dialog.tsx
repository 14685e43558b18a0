import { useState } from 'react';
import { isLonger } from '../../../../common/codes/is-longer.ts';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { Button } from '../../components/button.tsx';
import { Actions, Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { useCodeActions } from '../../data/code-actions.ts';
import { useIsMounted } from '../../data/use-is-mounted.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './code.module.css';

export function RenameDialog({ code, onClose }: { readonly code: Code; readonly onClose: () => void }) {
  const { code: texts, common, newCode } = useMessages();
  const { rename } = useCodeActions();
  const [name, setName] = useState(code.name ?? '');
  const [isPending, setPending] = useState(false);
  const isMounted = useIsMounted();
  const wanted = name.trim();
  const isTooLong = isLonger(wanted, 200);
  const save = async () => {
    if (isPending || isTooLong) return;
    setPending(true);
    // If it fails, a message says why, and the dialog keeps what was typed.
    const isDone = wanted === (code.name ?? '') || (await rename(code, wanted));
    if (!isDone) setPending(false);
    else if (isMounted()) onClose();
  };
  return (
    <Dialog title={texts.details.rename} isOpen onClose={onClose}>
      <form
        className={styles.form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <Field
          label={texts.details.renameTitle}
          value={name}
          onChange={setName}
          error={isTooLong ? newCode.nameTooLong : undefined}
          isOptional
          autoFocus
        />
        <Actions>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button look="primary" type="submit" isPending={isPending}>
            {common.save}
          </Button>
        </Actions>
      </form>
    </Dialog>
  );
}
