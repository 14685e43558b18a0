import type { LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';
import { Menu as AriaMenu, MenuItem, MenuTrigger, Popover } from 'react-aria-components';
import styles from './menu.module.css';

export interface MenuAction {
  readonly id: string;
  readonly label: string;
  readonly icon?: LucideIcon | undefined;
  readonly isDanger?: boolean | undefined;
  readonly isDisabled?: boolean | undefined;
  /** Leads to this address; otherwise `onAction` is called. */
  readonly href?: string | undefined;
  readonly onAction?: (() => void) | undefined;
}

/** A button, the only child, that opens a list of actions. */
export function Menu({
  label,
  actions,
  children,
}: {
  label: string;
  actions: readonly MenuAction[];
  children: ReactNode;
}) {
  return (
    <MenuTrigger>
      {children}
      <Popover className={styles.popover} offset={4}>
        <AriaMenu aria-label={label} className={styles.list}>
          {actions.map(({ id, label, icon: Icon, isDanger, isDisabled, href, onAction }) => (
            <MenuItem
              key={id}
              id={id}
              textValue={label}
              isDisabled={isDisabled ?? false}
              className={isDanger ? `${styles.item} ${styles.danger}` : styles.item}
              {...(href !== undefined && { href })}
              {...(onAction && { onAction })}
            >
              {Icon && <Icon aria-hidden size={16} />}
              {label}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}
