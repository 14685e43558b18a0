import { type FormEvent, type ReactNode, useState } from 'react';
import { useIsMounted } from '../data/use-is-mounted.ts';
import { useFirstMessages } from '../messages/index.ts';
import { Button } from './button.tsx';
import styles from './confirm.module.css';
import { Actions, Dialog } from './dialog.tsx';
import { Field } from './field.tsx';

interface ConfirmProps {
  readonly title: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  /** What will happen, in sentences. */
  readonly children: ReactNode;
  /** What the button says: the verb of the action. */
  readonly action: string;
  /**
   * Resolves when it is done; then the dialog closes. It stays open with what was typed if this rejects or is false.
   */
  readonly onConfirm: () => Promise<unknown> | undefined;
  /** For what can't be undone: the name that must be typed. */
  readonly name?: string | undefined;
}

/** Asks before something is destroyed; what can't be undone takes the name as well. */
export function Confirm({ title, isOpen, ...form }: ConfirmProps) {
  return (
    <Dialog title={title} isOpen={isOpen} onClose={form.onClose} isAlert>
      <ConfirmForm {...form} />
    </Dialog>
  );
}

/** The question, anew each time that the dialog opens. */
function ConfirmForm({ onClose, children, action, onConfirm, name }: Omit<ConfirmProps, 'title' | 'isOpen'>) {
  const { common } = useFirstMessages();
  const [typed, setTyped] = useState('');
  const [isPending, setPending] = useState(false);
  const isMounted = useIsMounted();
  const isNamed = name === undefined || sameName(typed, name);
  const confirm = async (event: FormEvent) => {
    event.preventDefault();
    if (isPending || !isNamed) return;
    setPending(true);
    try {
      if ((await onConfirm()) !== false && isMounted()) onClose();
    } catch {
      // The caller has shown why.
    } finally {
      setPending(false);
    }
  };
  return (
    <form className={styles.form} noValidate onSubmit={(event) => void confirm(event)}>
      <div>{children}</div>
      {name !== undefined && <Field label={common.confirmName(name)} value={typed} onChange={setTyped} autoFocus />}
      <Actions>
        <Button onPress={onClose}>{common.cancel}</Button>
        <Button look="danger" type="submit" isDisabled={!isNamed} isPending={isPending}>
          {action}
        </Button>
      </Actions>
    </form>
  );
}

/** Whether two names look the same: browsers show spaces in a row as one. */
function sameName(one: string, other: string): boolean {
  const [seen, wanted] = [one, other].map((name) => name.normalize('NFC').replace(/\s+/g, ' ').trim());
  return seen === wanted;
}
