import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import { useErrorText } from '../data/error-text.ts';
import { useMessages } from '../messages/index.ts';
import { Button } from './button.tsx';
import { Notice } from './page.tsx';

/** How long nothing is said while something loads, in ms: most of it has come by then. */
const SILENT_MS = 150;

interface LoadedProps<Data> {
  readonly query: Pick<UseQueryResult<Data, Error>, 'data' | 'error' | 'refetch'>;
  readonly children: (data: Data) => ReactNode;
}

/** What a query has loaded; until then a word that it loads, or why it could not be, with a way to try again. */
export function Loaded<Data>({ query: { data, error, refetch }, children }: LoadedProps<Data>) {
  const { shell } = useMessages();
  const errorText = useErrorText();
  if (data !== undefined) return children(data);
  if (!error) return <Loading />;
  return (
    <Notice look="danger" action={<Button onPress={() => void refetch()}>{shell.failed.retry}</Button>}>
      {errorText(error)}
    </Notice>
  );
}

/** Says that something loads, unless that is quick. */
export function Loading() {
  const { common } = useMessages();
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), SILENT_MS);
    return () => clearTimeout(timer);
  }, []);
  return isSlow ? <p role="status">{common.loading}</p> : null;
}
