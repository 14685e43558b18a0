import { useEffect, useState } from 'react';
import { useMessages } from '../messages/index.ts';

/** How long nothing is shown, in ms: what is loaded by then appears without a flash. */
const SILENT_MS = 150;

/** Says that something is being loaded, if it takes a while. */
export function Delayed() {
  const { common } = useMessages();
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), SILENT_MS);
    return () => clearTimeout(timer);
  }, []);
  return <p role="status">{isShown ? common.loading : ''}</p>;
}
