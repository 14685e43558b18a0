import { useFirstMessages } from '../../messages/index.ts';
import styles from './navigation.module.css';

/** The line-drawn signpost with the product's name. */
export function Logo() {
  const { shell } = useFirstMessages();
  return (
    <span className={styles.logo}>
      <svg viewBox="0 0 64 64" width="28" height="28" aria-hidden="true">
        <path d="M32 60V6M32 10h18l7 8-7 8H32zM32 32H14l-7 8 7 8h18" />
      </svg>
      {shell.product}
    </span>
  );
}
