import { useErrorText } from './error-text.ts';
import { isResultUnknown } from './idempotency-key.ts';
import { showToast } from './toasts.ts';

/**
 * Returns a function that takes a change back; if it cannot, it says why, and offers to try again where that may help.
 */
export function useUndo(): (undo: () => Promise<void>) => Promise<void> {
  const errorText = useErrorText();
  return async function run(undo) {
    try {
      await undo();
    } catch (error) {
      showToast(errorText(error), {
        kind: 'failed',
        ...(isResultUnknown(error) && { retry: () => void run(undo) }),
      });
    }
  };
}
