import { useState } from 'react';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { Button } from '../../components/button.tsx';
import { Actions, Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { useCodeActions } from '../../data/code-actions.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './code.module.css';

export function RenameDialog({ code, onClose }: { readonly code: Code; readonly onClose: () => void }) {
  const { code: texts, common } = useMessages();
  const { rename } = useCodeActions();
  const [name, setName] = useState(code.name ?? '');
  return (
    <Dialog title={texts.details.rename} isOpen onClose={onClose}>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== (code.name ?? '')) void rename(code, name.trim());
          onClose();
        }}
      >
        <Field label={texts.details.renameTitle} value={name} onChange={setName} maxLength={200} isOptional autoFocus />
        <Actions>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button look="primary" type="submit">
            {common.save}
          </Button>
        </Actions>
      </form>
    </Dialog>
  );
}
