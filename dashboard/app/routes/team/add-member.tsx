import { type FormEvent, useState } from 'react';
import { AccountsService } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Button } from '../../components/button.tsx';
import { Actions, Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { Select } from '../../components/select.tsx';
import { ROLES, type RoleName, useMay } from '../../data/session.ts';
import { showToast } from '../../data/toasts.ts';
import { useAction } from '../../data/use-action.ts';
import { useIsMounted } from '../../data/use-is-mounted.ts';
import { useLatest } from '../../data/use-latest.ts';
import { useMessages } from '../../messages/index.ts';
import { roleOf } from './roles.ts';
import styles from './team.module.css';

/** Adds a member by e-mail address. Only owners may add owners. */
export function AddMember({ onClose }: { readonly onClose: () => void }) {
  const { team: texts, shell, common } = useMessages();
  const isOwner = useMay('owner');
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<RoleName>('editor');
  const add = useAction(AccountsService.method.addMember, { errors: 'caller' });
  const isMounted = useIsMounted();
  const latest = useLatest(email);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (add.isRunning()) return;
    // What is wrong is shown at the field.
    void add.run({ email: email.trim(), role: roleOf(role) }).then(
      () => {
        showToast(texts.addedToast(email.trim()));
        // Another address that was typed meanwhile stays.
        if (isMounted() && latest.current === email) onClose();
      },
      () => undefined,
    );
  };
  return (
    <Dialog title={texts.add} isOpen onClose={onClose}>
      <form onSubmit={submit} className={styles.form} noValidate>
        <Field
          label={texts.email}
          description={texts.emailNote}
          value={email}
          onChange={setEmail}
          error={add.error}
          type="email"
          inputMode="email"
          autoComplete="off"
          autoFocus
        />
        <Select
          label={texts.role}
          value={role}
          onChange={setRole}
          options={ROLES.filter((each) => isOwner || each !== 'owner').map((id) => ({ id, label: shell.roles[id] }))}
        />
        <Actions>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button type="submit" look="primary" isPending={add.isPending} isDisabled={email.trim() === ''}>
            {common.add}
          </Button>
        </Actions>
      </form>
    </Dialog>
  );
}
