import { useEffect, useRef } from 'react';

/**
 * Whether a component is still shown, as once a call has ended: a dialog that the person has closed meanwhile must not close
 * the one that is open now.
 */
export function useIsShown(): () => boolean {
  const isShown = useRef(true);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  return () => isShown.current;
}
