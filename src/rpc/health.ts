import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceImpl } from '@connectrpc/connect';
import { failure } from '../../common/contract/errors.ts';
import { type Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/grpc/health/v1/health_pb.ts';

/** How often Watch checks the status, in ms. */
const WATCH_MS = 1_000;

/**
 * The standard health service (grpc.health.v1). `checks`: by service name, '' being the server itself; a service is
 * serving while its function resolves to true.
 */
export function healthService(checks: ReadonlyMap<string, () => Promise<boolean>>): ServiceImpl<typeof Health> {
  const statusOf = async (name: string) => {
    const check = checks.get(name);
    return check ? statusFrom(await check()) : Status.SERVICE_UNKNOWN;
  };
  return {
    async check({ service }) {
      if (!checks.has(service)) throw failure('NOT_FOUND', 'There is no such service here.');
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
      // Names share functions: each function is called once.
      const results = [...new Set(checks.values())].map(async (check) => [check, statusFrom(await check())] as const);
      const byCheck = new Map(await Promise.all(results));
      const statuses = [...checks].map(([name, check]) => [name, { status: byCheck.get(check) ?? Status.UNKNOWN }]);
      return { statuses: Object.fromEntries(statuses) };
    },
  };
}

function statusFrom(serving: boolean) {
  return serving ? Status.SERVING : Status.NOT_SERVING;
}
