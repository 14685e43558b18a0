import { toBinary } from '@bufbuild/protobuf';
import type { PoolClient } from 'pg';
import { type RoutedCode, routeKey, routeOf } from '../../common/contract/route.ts';
import { ROUTES } from '../../common/log/topics.ts';
import type { Code } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Route, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { type CodeChange, codeEvent } from '../events/events.ts';
import { addToOutbox, copyToOutbox, type OutboxRecord } from '../events/outbox.ts';
import { type CodeRow, scannedCodeFrom } from './code-row.ts';
import { codeRows } from './find-code.ts';

/**
 * Announces a change of a code: writes an event for subscribers and a route for gateways to the outbox, in the
 * transaction that makes the change. Returns the route.
 */
export async function announce(tx: PoolClient, row: CodeRow, code: Code, change: CodeChange): Promise<Route> {
  const route = routeOf(row);
  await addToOutbox(tx, recordsOf(row, route, code, change));
  return route;
}

/** Announces changes of many codes. */
export function announceAll<Row extends CodeRow>(
  tx: PoolClient,
  rows: readonly Row[],
  codeOf: (row: Row) => Code,
  changeOf: (row: Row) => CodeChange,
): Promise<void> {
  return copyToOutbox(tx, rows, (row) => recordsOf(row, routeOf(row), codeOf(row), changeOf(row)));
}

/** Codes that are in memory at a time: those with the largest policies or landing pages take 86 KB each. */
const MAX_CODES = 250;

/** Reads codes as the transaction has left them, and announces their changes. Ids are UUIDs. */
export async function announceCurrent(
  tx: PoolClient,
  platformUrl: string,
  accountId: string,
  ids: readonly string[],
  changeOf: (row: CodeRow) => CodeChange,
): Promise<void> {
  for (let start = 0; start < ids.length; start += MAX_CODES) {
    const rows = await codeRows(tx, accountId, ids.slice(start, start + MAX_CODES));
    await announceAll(tx, rows, (row) => scannedCodeFrom(row, platformUrl), changeOf);
  }
}

/** The event and the route of a change for the outbox. */
export function recordsOf(row: CodeRow, route: Route, code: Code, change: CodeChange): OutboxRecord[] {
  return [codeEvent(row.account_id, code, change), routeRecord(row, route)];
}

/** The record of a code's route for the outbox. */
export function routeRecord(row: RoutedCode, route = routeOf(row)): OutboxRecord {
  return { topic: ROUTES.name, key: routeKey('code', row.short_code), value: toBinary(RouteSchema, route) };
}
