/** Opens a route table like a worker, writes a route for each message, and replies after each write. */
import { create } from '@bufbuild/protobuf';
import { pino } from 'pino';
import { encodeId, newUuid } from '../../../common/contract/ids.ts';
import { Answer, RouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { openRouteTable } from './route-table.ts';

const table = openRouteTable(process.argv[2] ?? '', pino({ level: 'warn' }));
const [codeId, accountId] = [encodeId('qr', newUuid()), encodeId('acct', newUuid())];
process.on('message', (version: number) => {
  const value = { shortCode: 'written', codeId, accountId, answer: Answer.REDIRECT, targetUrl: 'https://example.com/' };
  const route = create(RouteSchema, { version: BigInt(version), entry: { case: 'code', value } });
  table.apply(route).then(() => process.send?.(`written ${version}`));
  setTimeout(() => process.send?.(`going on ${version}`), 20);
});
process.once('disconnect', () => process.exit());
process.send?.('ready');
