import { useState } from 'react';
import { parseWebAddress } from '../../../../common/codes/web-address.ts';
import { Button } from '../../components/button.tsx';
import { Actions, Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { useMessages } from '../../messages/index.ts';
import styles from './bulk.module.css';

interface RetargetDialogProps {
  /** `12 codes` */
  readonly counted: string;
  readonly onClose: () => void;
  readonly onSubmit: (url: string, note: string) => void;
}

/** Asks for the address that many codes will lead to. */
export function RetargetDialog({ counted, onClose, onSubmit }: RetargetDialogProps) {
  const { codes, common } = useMessages();
  const { bulk } = codes;
  const [url, setUrl] = useState('');
  const [note, setNote] = useState('');
  const [error, setError] = useState<string>();
  return (
    <Dialog title={bulk.retarget} isOpen onClose={onClose}>
      <form
        className={styles.form}
        // Otherwise the browser refuses to send a field that was wrong before.
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          // As the core checks it: it would refuse each of the codes on its own.
          const address = parseWebAddress(url);
          if ('url' in address) onSubmit(address.url, note.trim());
          else setError(common.urlProblems[address.problem]);
        }}
      >
        <p>{bulk.retargetText(counted)}</p>
        <Field label={bulk.newTarget} value={url} onChange={setUrl} error={error} inputMode="url" autoFocus mono />
        <Field
          label={bulk.note}
          description={bulk.noteHelp}
          value={note}
          onChange={setNote}
          maxLength={200}
          isOptional
        />
        <Actions>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button look="primary" type="submit">
            {bulk.retarget}
          </Button>
        </Actions>
      </form>
    </Dialog>
  );
}
