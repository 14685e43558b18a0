import type { ReactNode } from 'react';
import { useFirstMessages } from '../messages/index.ts';
import { Button } from './button.tsx';
import styles from './copy-button.module.css';
import { CopyButton } from './copy-button.tsx';
import { Actions, Dialog } from './dialog.tsx';
import { StayGuard } from './leave-guard.tsx';

interface ShownOnceProps {
  readonly title: string;
  /** The key or secret. */
  readonly value: string;
  /** What it is, to those who only hear it. */
  readonly label: string;
  /** What the button says that closes it. */
  readonly done: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A key or secret that is shown only now. Only its button closes it. */
export function ShownOnce({ title, value, label, done, onClose, children }: ShownOnceProps) {
  const { common } = useFirstMessages();
  return (
    <Dialog title={title} isOpen onClose={onClose} isAlert isKept>
      <StayGuard isNeeded={() => true} />
      {children}
      <output aria-label={label} className={styles.secret}>
        <code>{value}</code>
      </output>
      <Actions>
        <CopyButton text={value} what={label} label={common.copy} />
        <Button look="primary" onPress={onClose}>
          {done}
        </Button>
      </Actions>
    </Dialog>
  );
}
