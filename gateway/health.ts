import type { ServerResponse } from 'node:http';
import { singleFlight } from '../common/runtime/single-flight.ts';
import { machineMs } from './clock/machine-ms.ts';
import type { CoreClients } from './core/clients.ts';
import type { GatewayState } from './process/messages.ts';
import type { RouteTable } from './redirect/routes/route-table.ts';
import type { Spool } from './redirect/spool/spool.ts';
import { respondsInTime } from './responds-in-time.ts';

/** The parts that `/readyz` reports on. */
export interface Parts {
  readonly spool: Spool;
  readonly table: Pick<RouteTable, 'isComplete'>;
  readonly core: CoreClients;
  isStopping(): boolean;
  /** The last reported status of all processes of the gateway. */
  state(): GatewayState;
}

/** `GET /healthz`: the process is alive. */
export function answerAlive(response: ServerResponse): void {
  send(response, 200, { status: 'alive' });
}

/** Why a running gateway is not ready, as a clause; undefined if it is. `failing`: the code of the disk's error. */
export function problemOf(found: { readonly failing: string | undefined; readonly isTableComplete: boolean }) {
  if (found.failing !== undefined) return `scans can't be written to disk: ${found.failing}`;
  if (found.isTableComplete) return undefined;
  return 'the topic of routes has not been read to its end yet: custom domains may be missing';
}

/**
 * `GET /readyz`: 200 while scans can be answered and recorded. 503 until the table has contained the whole topic for
 * the first time, while the disk can't be written, and from the moment that the gateway is asked to stop. `degraded`
 * lists problems that are no reason to send scans elsewhere. Any worker answers for all of them; the core is checked at
 * most once a second, however frequent the requests are.
 */
export function readiness({ spool, table, core, state, isStopping }: Parts): (response: ServerResponse) => void {
  const coreResponds = singleFlight(() => respondsInTime(core.check()));

  return async (response) => {
    const isCoreUp = await coreResponds();
    const { carrier, workers } = state();
    const failing = spool.status().failing ?? workers.find((worker) => worker.spool.failing)?.spool.failing;
    const problem = isStopping()
      ? 'the gateway is stopping'
      : problemOf({ failing, isTableComplete: table.isComplete() });
    const { complete, lastAppliedAt, applied, changeLatencyMs } = carrier?.routes ?? {};
    send(response, problem === undefined ? 200 : 503, {
      status: problem ?? 'ready',
      degraded: [
        isCoreUp ? [] : 'api',
        carrier?.log ? [] : 'log',
        carrier?.shipping.failing === false ? [] : 'shipping',
      ].flat(),
      scans: {
        answered: sum(workers.map(({ answered }) => answered)),
        shipped: carrier?.shipping.shipped ?? 0,
        waiting_bytes: carrier?.shipping.depth ?? null,
        held_bytes: sum(workers.map((worker) => worker.spool.held)),
        lost: sum(workers.map((worker) => worker.spool.lost)),
      },
      routes: {
        taken: applied ?? 0,
        last_taken_at: lastAppliedAt === undefined ? null : new Date(lastAppliedAt).toISOString(),
        // Since the table last contained the whole topic, and the time that changes took from the topic to the table.
        age_ms: complete === undefined ? null : Math.round(machineMs() - complete),
        change_latency_p99_ms: changeLatencyMs ?? null,
      },
      workers: workers.length,
    });
  };
}

function sum(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0);
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
