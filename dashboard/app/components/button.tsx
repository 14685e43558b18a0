import type { LucideIcon } from 'lucide-react';
import type { ReactNode, Ref } from 'react';
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from 'react-aria-components';
import styles from './button.module.css';

interface ButtonProps extends Omit<AriaButtonProps, 'children' | 'className' | 'style'> {
  readonly children: ReactNode;
  readonly icon?: LucideIcon | undefined;
  /**
   * `primary`: the page's one main action; `quiet`: without a border; `danger`: destroys something; `field`: opens the
   * choice of a value, which it shows.
   */
  readonly look?: 'primary' | 'plain' | 'quiet' | 'danger' | 'field' | undefined;
  /** The key that leads to the button, or does what it does. */
  readonly 'aria-keyshortcuts'?: string | undefined;
  readonly ref?: Ref<HTMLButtonElement> | undefined;
}

const LOOKS = {
  plain: styles.button,
  primary: `${styles.button} ${styles.primary}`,
  quiet: `${styles.button} ${styles.quiet}`,
  danger: `${styles.button} ${styles.danger}`,
  field: `${styles.button} ${styles.field}`,
} as const;

export function Button({ children, icon: Icon, look = 'plain', 'aria-keyshortcuts': shortcut, ...props }: ButtonProps) {
  return (
    // React Aria leaves out the attribute otherwise.
    <AriaButton
      {...props}
      className={LOOKS[look]}
      render={(button) => <button {...button} aria-keyshortcuts={shortcut} />}
    >
      {Icon && <Icon aria-hidden size={16} />}
      {children}
    </AriaButton>
  );
}

interface IconButtonProps extends Omit<AriaButtonProps, 'children' | 'className' | 'style'> {
  readonly icon: LucideIcon;
  /** What it does; read aloud, and shown when hovered. */
  readonly label: string;
  readonly ref?: Ref<HTMLButtonElement> | undefined;
}

/** A button with an icon only, where repeated text would drown the content. */
export function IconButton({ icon: Icon, label, ...props }: IconButtonProps) {
  return (
    <AriaButton {...props} aria-label={label} className={`${styles.button} ${styles.icon}`}>
      <span title={label} className={styles.title}>
        <Icon aria-hidden size={16} />
      </span>
    </AriaButton>
  );
}

/** The look of a button for links, which lead to a page instead of doing something. */
export const buttonLink = { plain: LOOKS.plain, primary: LOOKS.primary } as const;
