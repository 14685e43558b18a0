import { useRouter } from '@tanstack/react-router';
import { useSyncExternalStore } from 'react';

/** Whether the address is another one than this page's, which is still shown while the next page is loaded. */
export function useIsLeft(path: string): boolean {
  const { history } = useRouter();
  return useSyncExternalStore(history.subscribe, () => history.location.pathname !== path);
}
