import type { LucideIcon } from 'lucide-react';
import { type ReactNode, useEffect } from 'react';
import { useFirstMessages } from '../messages/index.ts';
import styles from './page.module.css';

interface PageProps {
  readonly title: string;
  /** Beside the title: what can be done here, the main action last. */
  readonly actions?: ReactNode;
  /** A sentence below the title, or where the page belongs. */
  readonly subtitle?: ReactNode;
  /** Fills the height of the window, within which its last part scrolls. */
  readonly isFull?: boolean | undefined;
  readonly children: ReactNode;
}

/** A page: its title, which is the window's as well, its actions and its content. */
export function Page({ title, actions, subtitle, isFull, children }: PageProps) {
  const { shell } = useFirstMessages();
  useEffect(() => {
    document.title = `${title} · ${shell.product}`;
  }, [title, shell.product]);
  return (
    <div className={isFull ? `${styles.page} ${styles.full}` : styles.page}>
      <header className={styles.header}>
        <div className={styles.heading}>
          <h1>{title}</h1>
          {subtitle && <div className={styles.subtitle}>{subtitle}</div>}
        </div>
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** A titled part of a page. */
export function Section(props: { readonly title: string; readonly actions?: ReactNode; readonly children: ReactNode }) {
  return (
    <section className={styles.section} aria-label={props.title}>
      <header className={styles.sectionHeader}>
        <h2>{props.title}</h2>
        {props.actions}
      </header>
      {props.children}
    </section>
  );
}

/** A panel: what belongs together, framed. */
export function Panel({ children }: { readonly children: ReactNode }) {
  return <div className={styles.panel}>{children}</div>;
}

interface EmptyProps {
  readonly icon: LucideIcon;
  readonly title: string;
  /** What these things are good for. */
  readonly children: ReactNode;
  /** The one next step. */
  readonly action?: ReactNode;
}

/** In place of an empty list. */
export function Empty({ icon: Icon, title, children, action }: EmptyProps) {
  return (
    <div className={styles.empty}>
      <Icon aria-hidden size={32} strokeWidth={1.5} />
      <h2>{title}</h2>
      <p>{children}</p>
      {action}
    </div>
  );
}

/** A state or kind in a word, with a colour that only repeats what the word says. */
export function Status(props: {
  readonly look?: 'good' | 'warning' | 'danger' | 'plain' | undefined;
  readonly children: ReactNode;
}) {
  return <span className={`${styles.status} ${styles[props.look ?? 'plain']}`}>{props.children}</span>;
}

/** A live region for what appears later: screen readers announce only changes of regions that they know already. */
export function Announced({ children }: { readonly children: ReactNode }) {
  return (
    <div role="status" className={styles.announced}>
      {children}
    </div>
  );
}

/** A sentence that the reader should not miss. */
export function Notice(props: {
  readonly look?: 'plain' | 'warning' | 'danger' | undefined;
  readonly children: ReactNode;
  readonly action?: ReactNode;
}) {
  const { look = 'plain', children, action } = props;
  return (
    <div role={look === 'danger' ? 'alert' : 'note'} className={`${styles.notice} ${styles[`${look}Notice`]}`}>
      <div>{children}</div>
      {action}
    </div>
  );
}
