import type { RefObject } from 'react';
import { Menu as AriaMenu, MenuItem, Popover } from 'react-aria-components';
import { flushSync } from 'react-dom';
import styles from './menu.module.css';
import type { MenuAction } from './menu-action.ts';

interface MenuListProps {
  readonly label: string;
  readonly actions: readonly MenuAction[];
  /** The button that opened it, which gets the focus back. */
  readonly trigger: RefObject<HTMLButtonElement | null>;
  readonly onClose: () => void;
}

/** The list of an open menu. */
export default function MenuList({ label, actions, trigger, onClose }: MenuListProps) {
  // A dialog that an action opens gives the focus back to where it was: to the button, for the list is gone by then.
  const act = (onAction: () => void) => {
    onClose();
    requestAnimationFrame(() => {
      trigger.current?.focus();
      // What it changes is rendered before the next frame, as after a press: `passFocus` relies on that.
      flushSync(onAction);
    });
  };
  return (
    <Popover
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
      trigger="MenuTrigger"
      triggerRef={trigger}
      placement="bottom start"
      offset={4}
      aria-label={label}
      className={styles.popover}
    >
      <AriaMenu aria-label={label} autoFocus="first" onClose={onClose} className={styles.list}>
        {actions.map(({ id, label, icon: Icon, isDanger, isDisabled, onAction }) => (
          <MenuItem
            key={id}
            id={id}
            textValue={label}
            isDisabled={isDisabled ?? false}
            className={isDanger ? `${styles.item} ${styles.danger}` : styles.item}
            onAction={() => act(onAction)}
          >
            {Icon && <Icon aria-hidden size={16} />}
            {label}
          </MenuItem>
        ))}
      </AriaMenu>
    </Popover>
  );
}
