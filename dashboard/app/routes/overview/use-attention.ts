import { timestampDate } from '@bufbuild/protobuf/wkt';
import { useQuery } from '@connectrpc/connect-query';
import type { GetAccountResponse } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { type Batch, BatchesService, BatchStatus } from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { type Domain, DomainState, DomainsService } from '../../../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { type Endpoint, WebhooksService } from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { serverNow } from '../../data/clock.ts';
import { refreshInterval } from './refresh-interval.ts';

/** Share of a limit from which the overview mentions it. */
const NEARLY_REACHED = 0.8;

/** How old batches with failed rows may be to be mentioned, in ms. */
const RECENT_MS = 7 * 24 * 60 * 60 * 1_000;

/** Batches that are looked at, the newest. */
const MAX_BATCHES = 10;

/** Something that needs attention. */
export type Concern =
  | { readonly kind: 'domain'; readonly domain: Domain }
  | { readonly kind: 'endpoint'; readonly endpoint: Endpoint }
  /** Some deliveries to an endpoint were given up: they arrive only if they are resent. */
  | { readonly kind: 'undelivered'; readonly endpoint: Endpoint }
  | { readonly kind: 'batch'; readonly batch: Batch }
  | { readonly kind: 'codes' | 'requests'; readonly used: bigint; readonly limit: bigint };

/** What needs attention, the most urgent first. `isComplete` is false if something could not be checked. */
export function useAttention({ usage, features }: GetAccountResponse): {
  readonly concerns: readonly Concern[];
  readonly isLoading: boolean;
  readonly isComplete: boolean;
} {
  const hasBatches = features?.bulk !== false;
  const options = { refetchInterval: refreshInterval };
  const domains = useQuery(DomainsService.method.listDomains, {}, options);
  const endpoints = useQuery(WebhooksService.method.listEndpoints, {}, options);
  const batches = useQuery(
    BatchesService.method.listBatches,
    { limit: MAX_BATCHES },
    { ...options, enabled: hasBatches },
  );
  const queries = [domains, endpoints, ...(hasBatches ? [batches] : [])];
  const recent = serverNow() - RECENT_MS;
  const isOpen = ({ status, counts, createdAt }: Batch) =>
    status === BatchStatus.PROCESSING ||
    ((counts?.failed ?? 0) + (counts?.skipped ?? 0) > 0 && createdAt && timestampDate(createdAt).getTime() > recent);
  return {
    concerns: [
      ...(domains.data?.domains ?? [])
        .filter(({ state }) => state !== DomainState.LIVE)
        .sort((a, b) => b.state - a.state)
        .map((domain) => ({ kind: 'domain', domain }) as const),
      ...(endpoints.data?.endpoints ?? [])
        .filter(({ enabled, failingSince }) => !enabled || failingSince)
        .map((endpoint) => ({ kind: 'endpoint', endpoint }) as const),
      ...(endpoints.data?.endpoints ?? [])
        .filter(({ enabled, failingSince, failedDeliveries }) => enabled && !failingSince && failedDeliveries)
        .map((endpoint) => ({ kind: 'undelivered', endpoint }) as const),
      ...(batches.data?.batches ?? []).filter(isOpen).map((batch) => ({ kind: 'batch', batch }) as const),
      ...limitConcern('codes', usage?.codesUsed, usage?.codeLimit),
      ...limitConcern('requests', usage?.requestsUsed, usage?.monthlyQuota),
    ],
    isLoading: queries.some(({ isPending }) => isPending),
    isComplete: queries.every(({ isError }) => !isError),
  };
}

function limitConcern(kind: 'codes' | 'requests', used: bigint | undefined, limit: bigint | undefined): Concern[] {
  if (used === undefined || limit === undefined || Number(used) < Number(limit) * NEARLY_REACHED) return [];
  return [{ kind, used, limit }];
}
