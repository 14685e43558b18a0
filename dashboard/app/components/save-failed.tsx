import { useEffect, useRef } from 'react';
import type { Code } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { useCodeActions } from '../data/code-actions.ts';
import { reasonOf } from '../data/error-reason.ts';
import { useErrorText } from '../data/error-text.ts';
import { useMessages } from '../messages/index.ts';
import { Button } from './button.tsx';
import { catchFocus } from './focus.ts';
import { Notice } from './page.tsx';

interface SaveFailedProps {
  readonly code: Code;
  readonly error: unknown;
  /** Called once nothing hinders another try. */
  readonly onRestored: () => void;
}

/**
 * Why a form about a code could not be saved. If the code has been deleted meanwhile, it can be restored here, or
 * elsewhere.
 */
export function SaveFailed({ code, error, onRestored }: SaveFailedProps) {
  const { codes } = useMessages();
  const errorText = useErrorText();
  const { restore } = useCodeActions();
  const isMissing = reasonOf(error) === 'NOT_FOUND';
  const isDeleted = code.deletedAt !== undefined;
  const wasDeleted = useRef(false);
  const restored = () => {
    onRestored();
    requestAnimationFrame(catchFocus);
  };
  useEffect(() => {
    if (isMissing && wasDeleted.current && !isDeleted) restored();
    wasDeleted.current = isDeleted;
  });
  if (!isMissing) return <Notice look="danger">{errorText(error)}</Notice>;
  const restoreButton = (
    <Button
      onPress={async () => {
        if (await restore(code)) restored();
      }}
    >
      {codes.bulk.restore}
    </Button>
  );
  return (
    <Notice look="danger" action={restoreButton}>
      {codes.deletedMeanwhile}
    </Notice>
  );
}
