import { useEffect, useState } from 'react';
import { useFirstMessages } from '../messages/index.ts';

/** What loads faster than this shows nothing first, in ms. */
const UNNOTICED_MS = 150;

/** Says that something is being loaded, if it takes a while. */
export function Loading() {
  const { common } = useFirstMessages();
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), UNNOTICED_MS);
    return () => clearTimeout(timer);
  }, []);
  return <p role="status">{isShown ? common.loading : ''}</p>;
}
