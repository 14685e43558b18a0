import { X } from 'lucide-react';
import { type ReactNode, useEffect, useState } from 'react';
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components';
import { noteEntered } from '../data/entered.ts';
import { useFirstMessages } from '../messages/index.ts';
import { IconButton } from './button.tsx';
import styles from './dialog.module.css';
import { catchFocus } from './focus.ts';

interface DialogProps {
  readonly title: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
  /** `side`: a panel at the right edge, beside which the page stays visible; `wide`: a window for two columns. */
  readonly kind?: 'window' | 'wide' | 'side' | undefined;
  /** Interrupts with something that must be decided. */
  readonly isAlert?: boolean | undefined;
  /** Only what it contains closes it: neither Escape nor a button in its corner. */
  readonly isKept?: boolean | undefined;
}

/**
 * A window over the page. Escape closes it, and so does a click beside it, but not a window in which something was
 * entered; focus returns to where it was, if that still exists.
 */
export function Dialog({ title, isOpen, onClose, children, kind = 'window', isAlert, isKept = false }: DialogProps) {
  const { common } = useFirstMessages();
  const [isEntered, setEntered] = useState(false);
  return (
    <ModalOverlay
      isOpen={isOpen}
      onOpenChange={(open) => !open && onClose()}
      isDismissable={!isAlert && (kind === 'side' || !isEntered)}
      isKeyboardDismissDisabled={isKept}
      className={`${styles.overlay} ${kind === 'side' ? '' : styles.windowOverlay}`}
    >
      <Modal className={`${styles.modal} ${styles[kind]}`}>
        <AriaDialog role={isAlert ? 'alertdialog' : 'dialog'} className={styles.dialog}>
          <header className={styles.header}>
            <Heading slot="title" level={2}>
              {title}
            </Heading>
            {!isKept && <IconButton icon={X} label={common.close} onPress={onClose} />}
          </header>
          <Entered isKept={isKept} onChange={setEntered}>
            {children}
          </Entered>
          <Closing />
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/** Notes that something was typed, or is shown only here: it is kept if the session ends. */
function Entered(props: {
  readonly isKept: boolean;
  readonly onChange: (isEntered: boolean) => void;
  readonly children: ReactNode;
}) {
  const { isKept, onChange, children } = props;
  const [isEntered, setEntered] = useState(isKept);
  useEffect(() => {
    onChange(isEntered);
    return isEntered ? noteEntered() : undefined;
  }, [isEntered, onChange]);
  return (
    <div className={styles.content} onInput={() => setEntered(true)}>
      {children}
    </div>
  );
}

function Closing() {
  // React Aria returns the focus in the next frame.
  useEffect(() => () => void requestAnimationFrame(() => requestAnimationFrame(catchFocus)), []);
  return null;
}

/** The buttons at the end of a dialog or form. */
export function Actions({ children }: { readonly children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}
