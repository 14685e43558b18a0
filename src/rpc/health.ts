import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceImpl } from '@connectrpc/connect';
import { type Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { failure } from '../contract/errors.ts';

/** How often Watch looks again, in ms. */
const WATCH_MS = 1_000;

/**
 * The standard health service (grpc.health.v1). The server ('') and every service named in `services` serve while
 * `healthy` says so.
 */
export function healthService(
  services: readonly string[],
  healthy: () => Promise<boolean>,
): ServiceImpl<typeof Health> {
  const known = new Set(['', ...services]);
  const current = async () => ((await healthy()) ? Status.SERVING : Status.NOT_SERVING);
  return {
    async check({ service }) {
      if (!known.has(service)) throw failure('NOT_FOUND', 'There is no such service here.');
      return { status: await current() };
    },
    async *watch({ service }, { signal }) {
      let last: Status | undefined;
      while (!signal.aborted) {
        const status = known.has(service) ? await current() : Status.SERVICE_UNKNOWN;
        if (status !== last) yield { status };
        last = status;
        await sleep(WATCH_MS, undefined, { signal }).catch(() => undefined);
      }
    },
    async list() {
      const status = await current();
      return { statuses: Object.fromEntries([...known].map((service) => [service, { status }])) };
    },
  };
}
