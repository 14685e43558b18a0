import { toBinary } from '@bufbuild/protobuf';
import type { PoolClient } from 'pg';
import type { Code } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Route, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { codeJson } from '../contract/code-json.ts';
import { encodeId } from '../contract/ids.ts';
import { routeOf } from '../contract/route.ts';
import { cloudEvent, type EventType } from '../events/cloud-event.ts';
import { ROUTES } from '../events/log/topics.ts';
import { addToOutbox } from '../events/outbox.ts';
import type { CodeRow } from './code-row.ts';

/** What became of a code. `changed`: names of fields, for `qr.updated`. */
export interface CodeChange {
  readonly type: Extract<EventType, `qr.${string}`>;
  readonly changed?: readonly string[];
}

/**
 * Tells the world of a change, in the transaction that makes it: an event for subscribers and a route for gateways.
 * Returns the route.
 */
export async function announce(tx: PoolClient, row: CodeRow, code: Code, change: CodeChange): Promise<Route> {
  const route = routeOf(row);
  const data = {
    ...codeJson(code),
    short: `/r/${row.short_code}`,
    ...(change.changed ? { changed: change.changed } : {}),
  };
  await addToOutbox(tx, [
    cloudEvent({ type: change.type, accountId: encodeId('acct', row.account_id), subject: code.id, data }),
    { topic: ROUTES.name, key: `code:${row.short_code}`, value: toBinary(RouteSchema, route) },
  ]);
  return route;
}
