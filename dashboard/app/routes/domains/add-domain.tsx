import { type FormEvent, useState } from 'react';
import { DomainsService } from '../../../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { Button } from '../../components/button.tsx';
import { Actions, Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { useAction } from '../../data/use-action.ts';
import { useIsMounted } from '../../data/use-is-mounted.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './domains.module.css';

/** Asks for the hostname of a new domain; its records are shown in the list. */
export function AddDomain({ onClose }: { readonly onClose: () => void }) {
  const { domains: texts, common } = useMessages();
  const [hostname, setHostname] = useState('');
  const add = useAction(DomainsService.method.addDomain, { errors: 'caller' });
  const isMounted = useIsMounted();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // What is wrong is shown at the field.
    void add.run({ hostname }).then(
      () => isMounted() && onClose(),
      () => undefined,
    );
  };
  return (
    <Dialog title={texts.add} isOpen onClose={onClose}>
      <form onSubmit={submit} className={styles.form} noValidate>
        <Field
          label={texts.hostname}
          description={texts.hostnameNote}
          value={hostname}
          onChange={setHostname}
          error={add.error}
          inputMode="url"
          autoComplete="off"
          autoFocus
          mono
        />
        <Actions>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button type="submit" look="primary" isPending={add.isPending} isDisabled={hostname.trim() === ''}>
            {common.add}
          </Button>
        </Actions>
      </form>
    </Dialog>
  );
}
