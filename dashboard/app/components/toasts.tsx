import { X } from 'lucide-react';
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { useFirstMessages } from '../messages/index.ts';
import { Button, IconButton } from './button.tsx';
import { catchFocus } from './focus.ts';
import styles from './toasts.module.css';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: 'done' | 'failed' | 'pending';
  /** Takes back what was done. */
  readonly undo?: (() => void) | undefined;
  /** Does what failed once more. */
  readonly retry?: (() => void) | undefined;
}

/** How long a message is shown, in ms; one that can be undone, or that reports a failure, stays longer. */
const SHOWN_MS = 5_000;
const SHOWN_LONG_MS = 12_000;

/** Beyond this, the oldest messages give way to new ones, but none that can be acted on or that says what is being done. */
const MAX_SHOWN = 3;

let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

/** Says for some seconds what was done or why it was not. */
export function showToast(
  text: string,
  options: Partial<Pick<Toast, 'undo' | 'retry'>> & { kind?: 'done' | 'failed' } = {},
): void {
  add({ kind: 'done', ...options, text });
}

/** Says what is being done until the returned function is called. Meanwhile the browser asks before the page is closed. */
export function showPending(text: string): () => void {
  const id = add({ kind: 'pending', text });
  return () => remove(id);
}

/** The messages, read aloud when they appear. The attribute lets them be used beside an open dialog. */
export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div role="status" aria-live="polite" data-react-aria-top-layer="true" className={styles.toasts}>
      {shown.map((toast) => (
        <Message key={toast.id} {...toast} />
      ))}
    </div>
  );
}

function Message({ id, text, kind, undo, retry }: Toast) {
  const { common, shell } = useFirstMessages();
  const act = undo ?? retry;
  const message = useRef<HTMLDivElement>(null);
  const shownMs = undo || kind === 'failed' ? SHOWN_LONG_MS : SHOWN_MS;
  useEffect(() => {
    if (kind === 'pending') {
      const ask = (event: Event) => event.preventDefault();
      window.addEventListener('beforeunload', ask);
      return () => window.removeEventListener('beforeunload', ask);
    }
    const hide = () => {
      // While any of them is pointed at or focused, all stay, and none moves.
      if (message.current?.parentElement?.matches(':hover, :focus-within')) timer = setTimeout(hide, shownMs);
      else remove(id);
    };
    let timer = setTimeout(hide, shownMs);
    return () => clearTimeout(timer);
  }, [id, kind, shownMs]);
  const dismiss = () => {
    remove(id);
    requestAnimationFrame(catchFocus);
  };
  return (
    <div ref={message} className={`${styles.toast} ${styles[kind]}`}>
      <span className={styles.text}>{text}</span>
      {act && (
        <Button
          look="quiet"
          onPress={() => {
            dismiss();
            act();
          }}
        >
          {undo ? common.undo : shell.failed.retry}
        </Button>
      )}
      <IconButton icon={X} label={common.dismiss} onPress={dismiss} />
    </div>
  );
}

function add(toast: Omit<Toast, 'id'>): number {
  lastId += 1;
  const replaceable = toasts.filter(({ kind, undo, retry }) => kind !== 'pending' && !undo && !retry);
  const replaced = replaceable.slice(0, Math.max(0, toasts.length + 1 - MAX_SHOWN));
  set([...toasts.filter((shown) => !replaced.includes(shown)), { ...toast, id: lastId }]);
  return lastId;
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
