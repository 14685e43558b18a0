import type { ServiceImpl } from '@connectrpc/connect';
import { failure } from '../../common/contract/errors.ts';
import { pause } from '../../common/runtime/pause.ts';
import { type Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/grpc/health/v1/health_pb.ts';

/** Limits of Watch, which anyone may call any number of times. */
export interface WatchLimits {
  /** Concurrent calls. */
  readonly most: number;
  /** The longest duration of a call, in ms. Its client calls again, as the protocol demands. */
  readonly lastsMs: number;
  /** How often each checks the status, in ms. */
  readonly everyMs: number;
}

const WATCH_LIMITS: WatchLimits = { most: 1_000, lastsMs: 10 * 60_000, everyMs: 1_000 };

/**
 * The standard health service (grpc.health.v1). `checks`: by service name, '' being the server itself; a service is
 * serving while its function resolves to true.
 */
export function healthService(
  checks: ReadonlyMap<string, () => Promise<boolean>>,
  limits: WatchLimits = WATCH_LIMITS,
): ServiceImpl<typeof Health> {
  let watching = 0;
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
      if (watching >= limits.most) throw failure('LIMIT_REACHED', 'Too many clients watch; use Check.');
      watching++;
      try {
        const end = performance.now() + limits.lastsMs;
        let last: Status | undefined;
        while (!signal.aborted && performance.now() < end) {
          const status = await statusOf(service);
          if (status !== last) yield { status };
          last = status;
          await pause(limits.everyMs, signal);
        }
      } finally {
        watching--;
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
