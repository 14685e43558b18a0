import { X } from 'lucide-react';
import { useEffect, useLayoutEffect, useRef } from 'react';
import { removeToast, type Toast, useToasts } from '../data/toasts.ts';
import { useFirstMessages } from '../messages/index.ts';
import { Button, IconButton } from './button.tsx';
import { catchFocus } from './focus.ts';
import styles from './toasts.module.css';

/**
 * How long a message is shown, in ms: one that reports a failure longer, and one that can be acted on as long as it
 * takes to hear of it and to reach its button (WCAG 2.2, 2.2.1).
 */
const SHOWN_MS = 5_000;
const SHOWN_FAILED_MS = 12_000;
const SHOWN_ACTION_MS = 30_000;

/** Moves the focus to the button of the newest message that can be acted on. */
const FOCUS_KEY = 'F6';

/** What had the focus before it came to a message. */
let focusedBefore: EventTarget | null = null;

/** The messages, read aloud when they appear. The attribute lets them be used beside an open dialog. */
export function Toasts() {
  const { shell } = useFirstMessages();
  const shown = useToasts();
  const region = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const focusNewest = (event: KeyboardEvent) => {
      // With another key it may be the browser's.
      if (event.key !== FOCUS_KEY || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const newest = [...(region.current?.querySelectorAll<HTMLElement>('[aria-keyshortcuts]') ?? [])].at(-1);
      if (!newest) return;
      event.preventDefault();
      newest.focus();
    };
    // Fields and lists keep some keys to themselves.
    document.addEventListener('keydown', focusNewest, { capture: true });
    return () => document.removeEventListener('keydown', focusNewest, { capture: true });
  }, []);
  return (
    <div
      ref={region}
      role="status"
      aria-live="polite"
      aria-label={shell.messages(FOCUS_KEY)}
      data-react-aria-top-layer="true"
      className={styles.toasts}
      // Neither event names another element when the window itself loses or gets the focus.
      onFocus={({ currentTarget, relatedTarget }) => {
        if (relatedTarget && !currentTarget.contains(relatedTarget)) focusedBefore = relatedTarget;
      }}
      onBlur={({ currentTarget, relatedTarget }) => {
        if (relatedTarget && !currentTarget.contains(relatedTarget)) focusedBefore = null;
      }}
      onKeyDown={({ key }) => {
        if (key === 'Escape') giveBackFocus();
      }}
    >
      <div className={styles.list}>
        {shown.map((toast) => (
          <Message key={toast.id} {...toast} />
        ))}
      </div>
    </div>
  );
}

function Message({ id, text, kind, undo, retry }: Toast) {
  const { common, shell } = useFirstMessages();
  const act = undo ?? retry;
  const message = useRef<HTMLDivElement>(null);
  const shownMs = act ? SHOWN_ACTION_MS : kind === 'failed' ? SHOWN_FAILED_MS : SHOWN_MS;
  useEffect(() => {
    if (kind === 'pending') {
      const ask = (event: Event) => event.preventDefault();
      window.addEventListener('beforeunload', ask);
      return () => window.removeEventListener('beforeunload', ask);
    }
    const hide = () => {
      // While any of them is pointed at or focused, all stay, and none moves.
      if (message.current?.parentElement?.matches(':hover, :focus-within')) timer = setTimeout(hide, shownMs);
      else removeToast(id);
    };
    let timer = setTimeout(hide, shownMs);
    return () => clearTimeout(timer);
  }, [id, kind, shownMs]);
  useLayoutEffect(() => {
    const element = message.current;
    return () => {
      if (!element?.contains(document.activeElement)) return;
      requestAnimationFrame(() => {
        // Another page may have taken it, as the one for signing in does.
        if (document.activeElement === document.body) giveBackFocus();
      });
    };
  }, []);
  const dismiss = () => removeToast(id);
  return (
    <div ref={message} className={`${styles.toast} ${styles[kind]}`}>
      <span className={styles.text}>{text}</span>
      {act && (
        <Button
          look="quiet"
          aria-keyshortcuts={FOCUS_KEY}
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

/** Returns the focus from the messages to where it was, or to the page if that is gone. */
function giveBackFocus(): void {
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  if (focusedBefore instanceof HTMLElement) focusedBefore.focus();
  catchFocus();
}
