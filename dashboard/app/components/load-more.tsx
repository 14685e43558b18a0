import { useEffect, useRef } from 'react';
import { useFirstMessages } from '../messages/index.ts';
import { Button } from './button.tsx';
import { focusableRow, passFocus, rowsOf } from './focus.ts';

interface LoadMoreProps {
  readonly query: {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    readonly fetchNextPage: () => Promise<unknown>;
  };
}

/**
 * Loads the next page of the list or table before it. With the last page it is gone, and the first new row has the
 * focus.
 */
export function LoadMore({ query: { hasNextPage, isFetchingNextPage, fetchNextPage } }: LoadMoreProps) {
  const { common } = useFirstMessages();
  const element = useRef<HTMLDivElement>(null);
  const firstNew = useRef<() => HTMLElement | undefined>(undefined);
  useEffect(() => {
    if (isFetchingNextPage || !firstNew.current) return;
    passFocus(firstNew.current);
    firstNew.current = undefined;
  }, [isFetchingNextPage]);
  const load = () => {
    const list = element.current?.previousElementSibling;
    const { length } = rowsOf(list);
    firstNew.current = () => focusableRow(list, length);
    void fetchNextPage();
  };
  if (!hasNextPage) return null;
  return (
    <div ref={element}>
      <Button isPending={isFetchingNextPage} onPress={load}>
        {common.loadMore}
      </Button>
    </div>
  );
}
