import { useRef } from 'react';

/**
 * Returns a function that runs an action, unless the one before is still running: a mutation's `isPending` follows a
 * moment after its call, and Enter may be pressed again meanwhile. A failure is left to the mutation, which shows it.
 */
export function useOneAtATime(): (action: () => Promise<unknown>) => void {
  const isRunning = useRef(false);
  return (action) => {
    if (isRunning.current) return;
    isRunning.current = true;
    const ended = () => {
      isRunning.current = false;
    };
    action().then(ended, ended);
  };
}
