import { X } from 'lucide-react';
import { useSyncExternalStore } from 'react';
import { useFirstMessages } from '../messages/index.ts';
import { Button, IconButton } from './button.tsx';
import styles from './toasts.module.css';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: 'done' | 'failed';
  /** Takes back what was done. */
  readonly undo?: (() => void) | undefined;
}

/** How long a message is shown, in ms; one that can be undone, or that reports a failure, stays longer. */
const SHOWN_MS = 5_000;
const SHOWN_LONG_MS = 12_000;

let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

/** Says for some seconds what was done or why it was not. */
export function showToast(text: string, options: { kind?: Toast['kind']; undo?: () => void } = {}): void {
  lastId += 1;
  const toast: Toast = { id: lastId, text, kind: options.kind ?? 'done', undo: options.undo };
  set([...toasts.slice(-2), toast]);
  setTimeout(() => remove(toast.id), toast.undo || toast.kind === 'failed' ? SHOWN_LONG_MS : SHOWN_MS);
}

/** The messages, read aloud when they appear. */
export function Toasts() {
  const { common } = useFirstMessages();
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div role="status" aria-live="polite" className={styles.toasts}>
      {shown.map(({ id, text, kind, undo }) => (
        <div key={id} className={`${styles.toast} ${styles[kind]}`}>
          <span className={styles.text}>{text}</span>
          {undo && (
            <Button
              look="quiet"
              onPress={() => {
                remove(id);
                undo();
              }}
            >
              {common.undo}
            </Button>
          )}
          <IconButton icon={X} label={common.dismiss} onPress={() => remove(id)} />
        </div>
      ))}
    </div>
  );
}

function remove(id: number): void {
  set(toasts.filter((toast) => toast.id !== id));
}

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
