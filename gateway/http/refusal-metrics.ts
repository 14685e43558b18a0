import { metrics } from '@opentelemetry/api';

/** Why clients are rejected; `idle_connections` and `unread_answers` are connections that were closed to make room. */
const REFUSALS = [
  'address_connections',
  'address_requests',
  'connections',
  'failed_authentications',
  'idle_connections',
  'requests_ahead',
  'unknown_codes',
  'unread_answers',
] as const;

export type RefusalReason = (typeof REFUSALS)[number];

/** Counts a rejected connection or request. */
export type CountRefusal = (reason: RefusalReason) => void;

/** Measures how often a worker rejects clients that exceed their limits. Called once telemetry has started. */
export function measureRefusals(): CountRefusal {
  const counts = new Map<RefusalReason, number>(REFUSALS.map((reason) => [reason, 0]));
  const refused = metrics.getMeter('signpost.gateway').createObservableCounter('signpost.gateway.refused', {
    unit: '{refusal}',
    description: 'Connections and requests that exceeded the limits on clients',
  });
  refused.addCallback((result) => {
    for (const [reason, figure] of counts) result.observe(figure, { 'signpost.refusal.reason': reason });
  });
  return (reason) => void counts.set(reason, (counts.get(reason) ?? 0) + 1);
}
