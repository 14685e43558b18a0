/** Writes routes into a table on a small disk until it is full, 200 times more, and once after some space was freed. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { pino } from 'pino';
import { encodeId, newUuid } from '../../../common/contract/ids.ts';
import { Answer, type Route, RouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { openRouteTable } from './route-table.ts';

const disk = process.argv[2] ?? '';
const [codeId, accountId] = [encodeId('qr', newUuid()), encodeId('acct', newUuid())];
writeFileSync(join(disk, 'filler'), Buffer.alloc(2 ** 20));
const table = openRouteTable(join(disk, 'routes'), pino({ level: 'silent' }));
const errors = new Set<unknown>();
let failed = 0;
let sequence = 0;

while (failed < 200) {
  const routes = Array.from({ length: 200 }, () => route());
  try {
    await table.advance(routes, { partition: 0, next: 1n });
  } catch (error) {
    failed++;
    errors.add((error as NodeJS.ErrnoException).code);
  }
}
rmSync(join(disk, 'filler'));
const last = route();
await table.apply(last);
const written = table.code(`${sequence}`.padStart(7, '0')) !== undefined;
await table.close();
console.log(JSON.stringify({ failed, written, errors: [...errors] }));

function route(): Route {
  const shortCode = `${++sequence}`.padStart(7, '0');
  const targetUrl = `https://example.com/${'x'.repeat(500)}`;
  const value = { shortCode, codeId, accountId, answer: Answer.REDIRECT, targetUrl };
  return create(RouteSchema, { version: 1n, entry: { case: 'code', value } });
}
