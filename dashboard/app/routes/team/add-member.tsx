import { type FormEvent, useState } from 'react';
import { AccountsService } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Button } from '../../components/button.tsx';
import { Actions, Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { Select } from '../../components/select.tsx';
import { ROLES, type RoleName, useMay } from '../../data/session.ts';
import { useAction } from '../../data/use-action.ts';
import { useIsMounted } from '../../data/use-is-mounted.ts';
import { useMessages } from '../../messages/index.ts';
import { roleOf } from './roles.ts';
import styles from './team.module.css';

/** Adds a member by e-mail address. Only owners may add owners. */
export function AddMember({ onClose }: { readonly onClose: () => void }) {
  const { team: texts, shell, common } = useMessages();
  const isOwner = useMay('owner');
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<RoleName>('editor');
  const add = useAction(AccountsService.method.addMember, { errors: 'caller', done: texts.addedToast(email) });
  const isMounted = useIsMounted();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // What is wrong is shown at the field.
    void add.run({ email: email.trim(), role: roleOf(role) }).then(
      () => isMounted() && onClose(),
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
