import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceImpl } from '@connectrpc/connect';
import { failure } from '../../common/contract/errors.ts';
import { type Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/grpc/health/v1/health_pb.ts';

/** What clients that watch may take: anybody may, with any number of calls. */
export interface WatchLimits {
  /** Calls at a time. */
  readonly most: number;
  /** How long one may last, in ms. Its client calls again, as gRPC has it. */
  readonly lastsMs: number;
  /** How often each looks again, in ms. */
  readonly everyMs: number;
}

const WATCH_LIMITS: WatchLimits = { most: 1_000, lastsMs: 10 * 60_000, everyMs: 1_000 };

/** How long an answer is believed, in ms. */
const BELIEVED_MS = 1_000;

/**
 * The standard health service (grpc.health.v1): each name in `known`, the server's own being '', serves while its
 * function says so.
 */
export function healthService(
  known: ReadonlyMap<string, () => Promise<boolean>>,
  limits: WatchLimits = WATCH_LIMITS,
): ServiceImpl<typeof Health> {
  let watching = 0;
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
      if (watching >= limits.most) throw failure('LIMIT_REACHED', 'Too many clients watch; use Check.');
      watching++;
      try {
        const end = performance.now() + limits.lastsMs;
        let last: Status | undefined;
        while (!signal.aborted && performance.now() < end) {
          const status = await statusOf(service);
          if (status !== last) yield { status };
          last = status;
          await sleep(limits.everyMs, undefined, { signal }).catch(() => undefined);
        }
      } finally {
        watching--;
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

/** Asks once for all that ask at the same time or soon after: anybody may ask for health, as often as they like. */
export function shared<Answer>(ask: () => Promise<Answer>, believedMs = BELIEVED_MS): () => Promise<Answer> {
  let last: { readonly answer: Promise<Answer>; until: number } | undefined;
  return () => {
    if (last && performance.now() < last.until) return last.answer;
    const asked = { answer: ask(), until: Number.POSITIVE_INFINITY };
    last = asked;
    const believe = () => {
      asked.until = performance.now() + believedMs;
    };
    asked.answer.then(believe, believe);
    return asked.answer;
  };
}
