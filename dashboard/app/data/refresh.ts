import type { DescService } from '@bufbuild/protobuf';
import { createConnectQueryKey } from '@connectrpc/connect-query';
import { useQueryClient } from '@tanstack/react-query';

/** Loads anew what pages show of these services, after something of it was changed. */
export function useRefresh(): (...services: readonly DescService[]) => void {
  const queries = useQueryClient();
  return (...services) => {
    for (const schema of services) {
      void queries.invalidateQueries({ queryKey: createConnectQueryKey({ schema, cardinality: undefined }) });
    }
  };
}
