import { Check, Copy } from 'lucide-react';
import { useEffect, useState } from 'react';
import { showToast } from '../data/toasts.ts';
import { useFirstMessages } from '../messages/index.ts';
import { Button, IconButton } from './button.tsx';
import styles from './copy-button.module.css';

/** How long the button says that it has copied, in ms. */
const SAID_MS = 2_000;

/** Copies `text`. `what` names it to those who only hear the button. */
export function CopyButton({
  text,
  what,
  label,
  excludeFromTabOrder,
}: {
  readonly text: string;
  readonly what: string;
  readonly label?: string;
  /** In a row of a long list, where each button would be a stop on the way out of it. */
  readonly excludeFromTabOrder?: boolean;
}) {
  const { common } = useFirstMessages();
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), SAID_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      // Browsers can refuse, and have no clipboard without TLS. Then the person copies it from the message.
      showToast(`${label ?? common.copyOf(what)}: ${text}`, { kind: 'failed' });
    }
  };
  const icon = isCopied ? Check : Copy;
  return (
    <>
      {label === undefined ? (
        <IconButton
          icon={icon}
          label={isCopied ? common.copied : common.copyOf(what)}
          onPress={() => void copy()}
          excludeFromTabOrder={excludeFromTabOrder}
        />
      ) : (
        <Button icon={icon} onPress={() => void copy()}>
          {isCopied ? common.copied : label}
        </Button>
      )}
      <span role="status" className="visually-hidden">
        {isCopied ? common.copied : ''}
      </span>
    </>
  );
}

/** A value in monospace with a button that copies it: addresses, ids, DNS records. */
export function Copyable({
  text,
  what,
  href,
}: {
  readonly text: string;
  readonly what: string;
  readonly href?: string;
}) {
  return (
    <span className={styles.copyable}>
      {href === undefined ? (
        <code>{text}</code>
      ) : (
        <a href={href} target="_blank" rel="noreferrer">
          <code>{text}</code>
        </a>
      )}
      <CopyButton text={text} what={what} />
    </span>
  );
}
