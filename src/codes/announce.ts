import { toBinary } from '@bufbuild/protobuf';
import type { PoolClient } from 'pg';
import type { Code } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Route, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { type RoutedCode, routeOf } from '../contract/route.ts';
import { type CodeChange, codeEvent } from '../events/events.ts';
import { ROUTES } from '../events/log/topics.ts';
import { addToOutbox, type Outgoing } from '../events/outbox.ts';
import type { CodeRow } from './code-row.ts';

/**
 * Tells the world of a change, in the transaction that makes it: an event for subscribers and a route for gateways.
 * Returns the route.
 */
export async function announce(tx: PoolClient, row: CodeRow, code: Code, change: CodeChange): Promise<Route> {
  const [route] = await announceAll(tx, [{ row, code }], change);
  if (!route) throw new Error('a change was announced without a route');
  return route;
}

/** The same for many codes that went through the same change, in one statement. */
export async function announceAll(
  tx: PoolClient,
  codes: readonly { readonly row: CodeRow; readonly code: Code }[],
  change: CodeChange,
): Promise<Route[]> {
  const routed = codes.map(({ row, code }) => ({ row, code, route: routeOf(row) }));
  await addToOutbox(
    tx,
    routed.flatMap(({ row, code, route }) => [codeEvent(row.account_id, code, change), routeRecord(row, route)]),
  );
  return routed.map(({ route }) => route);
}

/** Where a code leads, for the outbox. */
export function routeRecord(row: RoutedCode, route = routeOf(row)): Outgoing {
  return { topic: ROUTES.name, key: `code:${row.short_code}`, value: toBinary(RouteSchema, route) };
}
