import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceImpl } from '@connectrpc/connect';
import { failure } from '../../common/contract/errors.ts';
import { type Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/grpc/health/v1/health_pb.ts';

/** How often Watch looks again, in ms. */
const WATCH_MS = 1_000;

/**
 * The standard health service (grpc.health.v1): each name in `known`, the server's own being '', serves while its
 * function says so.
 */
export function healthService(known: ReadonlyMap<string, () => Promise<boolean>>): ServiceImpl<typeof Health> {
  const statusOf = async (name: string) => {
    const healthy = known.get(name);
    return healthy ? shown(await healthy()) : Status.SERVICE_UNKNOWN;
  };
  return {
    async check({ service }) {
      if (!known.has(service)) throw failure('NOT_FOUND', 'There is no such service here.');
      return { status: await statusOf(service) };
    },
    async *watch({ service }, { signal }) {
      let last: Status | undefined;
      while (!signal.aborted) {
        const status = await statusOf(service);
        if (status !== last) yield { status };
        last = status;
        await sleep(WATCH_MS, undefined, { signal }).catch(() => undefined);
      }
    },
    async list() {
      // Names share functions: each is asked once.
      const asked = [...new Set(known.values())].map(async (healthy) => [healthy, shown(await healthy())] as const);
      const told = new Map(await Promise.all(asked));
      const statuses = [...known].map(([name, healthy]) => [name, { status: told.get(healthy) ?? Status.UNKNOWN }]);
      return { statuses: Object.fromEntries(statuses) };
    },
  };
}

function shown(serving: boolean) {
  return serving ? Status.SERVING : Status.NOT_SERVING;
}
