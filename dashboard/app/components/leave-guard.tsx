import { useBlocker } from '@tanstack/react-router';
import { useEffect } from 'react';
import { isAnythingEntered, noteEntered } from '../data/entered.ts';
import { useFirstMessages } from '../messages/index.ts';
import { Confirm } from './confirm.tsx';

/** Asks before a link, the browser's buttons or a closed tab discard what was entered. Not inside of a form. */
export function LeaveGuard({ isChanged }: { readonly isChanged: boolean }) {
  useEffect(() => (isChanged ? noteEntered() : undefined), [isChanged]);
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn: ({ current, next }) => isChanged && current.pathname !== next.pathname,
    enableBeforeUnload: () => isChanged && isAnythingEntered(),
    withResolver: true,
  });
  return <ConfirmDiscard isOpen={status === 'blocked'} onClose={() => reset?.()} onDiscard={() => proceed?.()} />;
}

/**
 * Keeps the page while it shows, or waits for, a key or secret that is shown only once: neither links nor Back leave
 * it.
 */
export function StayGuard({ isNeeded }: { readonly isNeeded: () => boolean }) {
  useBlocker({ shouldBlockFn: isNeeded, enableBeforeUnload: isNeeded });
  return null;
}

interface ConfirmDiscardProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  /** The question stays open until what it returns is resolved. */
  readonly onDiscard: () => unknown;
}

/** Asks whether what was entered is discarded. */
export function ConfirmDiscard({ isOpen, onClose, onDiscard }: ConfirmDiscardProps) {
  const { discard } = useFirstMessages().common;
  return (
    <Confirm
      title={discard.title}
      isOpen={isOpen}
      onClose={onClose}
      action={discard.action}
      onConfirm={async () => onDiscard()}
    >
      {discard.text}
    </Confirm>
  );
}
