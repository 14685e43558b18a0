import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useErrorText } from '../data/error-text.ts';
import { isPermanent } from '../data/queries.ts';
import { useFirstMessages } from '../messages/index.ts';
import { Button } from './button.tsx';
import { Loading } from './loading.tsx';
import { Notice } from './page.tsx';

interface LoadedProps<Data> {
  readonly query: Pick<UseQueryResult<Data, Error>, 'data' | 'error' | 'refetch'>;
  readonly children: (data: Data) => ReactNode;
}

/** What a query has loaded; until then a word that it loads, or why it could not be, with a way to try again. */
export function Loaded<Data>({ query: { data, error, refetch }, children }: LoadedProps<Data>) {
  if (data !== undefined) return children(data);
  return error ? <LoadFailed error={error} retry={() => void refetch()} /> : <Loading />;
}

/** Why something could not be loaded, with a way to try again unless that would change nothing. */
export function LoadFailed({ error, retry }: { readonly error: unknown; readonly retry: () => void }) {
  const { shell } = useFirstMessages();
  const errorText = useErrorText();
  return (
    <Notice look="danger" action={!isPermanent(error) && <Button onPress={retry}>{shell.failed.retry}</Button>}>
      {errorText(error)}
    </Notice>
  );
}
