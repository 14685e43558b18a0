import type { ReactNode } from 'react';
import { Dialog, Modal, ModalOverlay } from 'react-aria-components';
import { useFirstMessages } from '../../messages/index.ts';
import styles from './shell.module.css';

/** The navigation on narrow screens: over the page, at its left edge. */
export default function Drawer({ onClose, children }: { readonly onClose: () => void; readonly children: ReactNode }) {
  const { shell } = useFirstMessages();
  return (
    <ModalOverlay isOpen onOpenChange={(isOpen) => !isOpen && onClose()} isDismissable className={styles.overlay}>
      <Modal className={styles.drawer}>
        <Dialog aria-label={shell.navigation} className={styles.drawerDialog}>
          {children}
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}
