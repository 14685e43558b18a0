import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { callUnaryMethod, createConnectQueryKey, useTransport } from '@connectrpc/connect-query';
import { useInfiniteQuery } from '@tanstack/react-query';

/**
 * The pages of a list that is read by cursor. `request`: the request for a page; the first one has no cursor, which the
 * core tells from an empty one. `refreshMs`: how often what is loaded is loaded again.
 */
export function usePages<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: (cursor: string | undefined) => MessageInitShape<I>,
  nextCursor: (page: MessageShape<O>) => string | undefined,
  refreshMs?: number,
) {
  const transport = useTransport();
  const key = createConnectQueryKey({ schema: method, input: request(undefined), transport, cardinality: 'finite' });
  const first: string | undefined = undefined;
  return useInfiniteQuery({
    queryKey: [...key, 'pages'],
    queryFn: ({ signal, pageParam }) => callUnaryMethod(transport, method, request(pageParam), { signal }),
    initialPageParam: first as string | undefined,
    getNextPageParam: nextCursor,
    ...(refreshMs !== undefined && { refetchInterval: refreshMs }),
  });
}
