import type { ServerResponse } from 'node:http';
import type { Log } from '../src/events/log/log.ts';
import type { CoreClients } from './core.ts';
import type { RouteFollower } from './redirect/follow-routes.ts';
import type { Shipper } from './redirect/ship-scans.ts';
import type { Spool } from './redirect/spool.ts';

/** How long a part may take to answer before it counts as away, in ms. */
const PATIENCE_MS = 1_000;

/** What `/readyz` speaks of. */
export interface Parts {
  readonly spool: Spool;
  readonly shipper: Shipper;
  readonly follower: RouteFollower;
  readonly core: CoreClients;
  readonly log: Log;
}

/** `GET /healthz`: the process is alive. */
export function answerAlive(response: ServerResponse): void {
  send(response, 200, { status: 'alive' });
}

/**
 * `GET /readyz`: 200 while scans can be answered and kept, 503 when the disk takes none; and what else is degraded,
 * which is no reason to send scans elsewhere. Others are asked at most once a second, however often we are.
 */
export function readiness({ spool, shipper, follower, core, log }: Parts): (response: ServerResponse) => void {
  let asked = { at: 0, answers: Promise.resolve([false, false]) };

  return async (response) => {
    if (Date.now() - asked.at >= PATIENCE_MS) {
      asked = { at: Date.now(), answers: Promise.all([inTime(core.check()), inTime(log.check())]) };
    }
    const [coreIsThere, logIsThere] = await asked.answers;
    const { failing, held, lost } = spool.status();
    const { taken, last } = follower.status();
    const shipping = shipper.status();
    send(response, failing === undefined ? 200 : 503, {
      status: failing === undefined ? 'ready' : `scans can't be written to disk: ${failing}`,
      degraded: [coreIsThere ? [] : 'api', logIsThere ? [] : 'log', shipping.failing ? 'shipping' : []].flat(),
      scans: { shipped: shipping.shipped, held_bytes: held, lost },
      routes: { taken, last_taken_at: last === undefined ? null : new Date(last).toISOString() },
    });
  };
}

function inTime(answer: Promise<unknown>): Promise<boolean> {
  const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), PATIENCE_MS).unref());
  const answered = answer.then(
    () => true,
    () => false,
  );
  return Promise.race([answered, late]);
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const json = JSON.stringify(body);
  response
    .writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(Buffer.byteLength(json)),
      'cache-control': 'no-store',
    })
    .end(json);
}
