/** Writes routes into the table of a folder without a pause, and sends a message after every hundred. */
import { create } from '@bufbuild/protobuf';
import { pino } from 'pino';
import { encodeId, newUuid } from '../../../common/contract/ids.ts';
import { Answer, RouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { openRouteTable } from './route-table.ts';

const table = openRouteTable(process.argv[2] ?? '', pino({ level: 'warn' }));
const [codeId, accountId] = [encodeId('qr', newUuid()), encodeId('acct', newUuid())];
process.once('disconnect', () => process.exit());

async function write(): Promise<void> {
  for (let written = 0; written < 100; written++) {
    const shortCode = Math.random().toString(36).slice(2, 9);
    const value = { shortCode, codeId, accountId, answer: Answer.REDIRECT, targetUrl: 'https://example.com/' };
    await table.apply(create(RouteSchema, { version: 1n, entry: { case: 'code', value } }));
  }
  process.send?.('written');
  setImmediate(write);
}

write();
