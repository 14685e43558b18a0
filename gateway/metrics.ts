import { type Attributes, metrics, type ObservableResult } from '@opentelemetry/api';
import { measureEventLoop } from '../common/runtime/event-loop.ts';
import { machineMs } from './in-time.ts';
import type { FollowerStatus } from './redirect/routes/follow-routes.ts';
import type { ShipperStatus } from './redirect/spool/ship-scans.ts';
import type { SpoolStatus } from './redirect/spool/spool.ts';

/** Metrics of the process; an OpenTelemetry SDK loaded with it exports them, and without one they cost nothing. */
const meter = metrics.getMeter('signpost.gateway');

/** Measures a worker. */
export function measureWorker(
  worker: number,
  status: () => { readonly answered: number; readonly spool: SpoolStatus },
): void {
  const attributes = { worker };
  measureEventLoop(attributes);
  count('scans.answered', '{scan}', 'Scans that were answered and recorded', attributes, () => status().answered);
  count(
    'scans.lost',
    '{scan}',
    'Scans lost because the disk could not be written and memory was full',
    attributes,
    () => status().spool.lost,
  );
  count(
    'spool.failures',
    '{write}',
    'Writes of scans that the disk refused',
    attributes,
    () => status().spool.failures,
  );
  gauge(
    'spool.held',
    'By',
    'Scans that wait in memory because the disk can’t be written',
    attributes,
    () => status().spool.held,
  );
}

/** Why clients are rejected; `idle_connections` were closed to make room for others. */
const REFUSALS = [
  'address_connections',
  'address_requests',
  'connections',
  'failed_authentications',
  'idle_connections',
  'requests_ahead',
  'unknown_codes',
] as const;

export type RefusalReason = (typeof REFUSALS)[number];

/** Counts a rejected connection or request. */
export type CountRefusal = (reason: RefusalReason) => void;

/** Measures how often a worker rejects clients that exceed their limits. */
export function measureRefusals(worker: number): CountRefusal {
  const counts = new Map<RefusalReason, number>(REFUSALS.map((reason) => [reason, 0]));
  const refused = meter.createObservableCounter('signpost.gateway.refused', {
    unit: '{refusal}',
    description: 'Connections and requests that exceeded the limits on clients',
  });
  refused.addCallback((result) => {
    for (const [reason, figure] of counts) result.observe(figure, { worker, reason });
  });
  return (reason) => void counts.set(reason, (counts.get(reason) ?? 0) + 1);
}

/** Measures the carrier; `change` records how long a change took from the topic into the table, in ms. */
export function measureCarrier(status: () => { readonly shipping: ShipperStatus; readonly routes: FollowerStatus }): {
  change(ms: number): void;
} {
  measureEventLoop({ worker: 'carrier' });
  count('scans.shipped', '{scan}', 'Scans that were published to the log', {}, () => status().shipping.shipped);
  gauge('spool.depth', 'By', 'Scans that wait on disk for the log', {}, () => status().shipping.depth);
  gauge('routes.age', 's', 'Time since the route table last contained its whole topic', {}, () => {
    const { complete } = status().routes;
    return complete === undefined ? undefined : (machineMs() - complete) / 1_000;
  });
  const latency = meter.createHistogram('signpost.gateway.routes.change_latency', {
    unit: 's',
    description: 'From the topic into the route table',
  });
  return { change: (ms) => latency.record(ms / 1_000) };
}

type Figure = () => number | undefined;

function count(name: string, unit: string, description: string, attributes: Attributes, figure: Figure): void {
  const counter = meter.createObservableCounter(`signpost.gateway.${name}`, { unit, description });
  counter.addCallback((result) => observe(result, attributes, figure));
}

function gauge(name: string, unit: string, description: string, attributes: Attributes, figure: Figure): void {
  const measured = meter.createObservableGauge(`signpost.gateway.${name}`, { unit, description });
  measured.addCallback((result) => observe(result, attributes, figure));
}

function observe(result: ObservableResult, attributes: Attributes, figure: Figure): void {
  const value = figure();
  if (value !== undefined) result.observe(value, attributes);
}
