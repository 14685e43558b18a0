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
 * which is no reason to send scans elsewhere.
 */
export async function answerReady(response: ServerResponse, parts: Parts): Promise<void> {
  const [core, log] = await Promise.all([inTime(parts.core.check()), inTime(parts.log.check())]);
  const spool = parts.spool.status();
  const shipper = parts.shipper.status();
  const routes = parts.follower.status();
  const degraded = [...(core ? [] : ['api']), ...(log ? [] : ['log']), ...(shipper.failing ? ['shipping'] : [])];
  send(response, spool.failing === null ? 200 : 503, {
    status: spool.failing === null ? 'ready' : 'scans are not kept on disk',
    degraded,
    spool,
    shipper,
    routes: { taken: routes.taken, last_taken_at: routes.last === null ? null : new Date(routes.last).toISOString() },
  });
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
