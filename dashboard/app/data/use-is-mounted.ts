import { useInsertionEffect, useRef } from 'react';

/**
 * Whether a component is still mounted, as once a call has ended: a dialog that the person has closed meanwhile must
 * not close the one that is open now.
 */
export function useIsMounted(): () => boolean {
  const isMounted = useRef(true);
  // Other effects also end when `Activity` hides the page because the session has ended; a dialog whose call has ended
  // closes then, too.
  useInsertionEffect(() => {
    isMounted.current = true;
    return () => {
      isMounted.current = false;
    };
  }, []);
  return () => isMounted.current;
}
