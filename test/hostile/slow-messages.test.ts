import { once } from 'node:events';
import { connect as http2Connect, type IncomingHttpHeaders } from 'node:http2';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { beforeAll, expect, test } from 'vitest';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { bearer } from '../../src/rpc/rpc-suite.fixture.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';

let signpost: Signpost;
let slowKey: string;
let apiKey: string;
beforeAll(async () => {
  signpost = await startSignpost();
  [{ apiKey: slowKey }, { apiKey }] = await Promise.all([
    signpost.createAccount({ plan: Plan.ENTERPRISE }),
    signpost.createAccount({ plan: Plan.ENTERPRISE }),
  ]);
});

const PORTS = ['corePort', 'grpcPort'] as const;
/** Many times what an account may send concurrently. */
const SLOW = 50;

test('a message that does not arrive is abandoned, and meanwhile does not block other accounts', async () => {
  const sessions = PORTS.map((port) => http2Connect(`http://127.0.0.1:${signpost[port]}`));
  const given = sessions.flatMap((session) =>
    Array.from({ length: SLOW }, async () => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/signpost.batches.v1.BatchesService/CreateBatch',
        'content-type': 'application/grpc+proto',
        authorization: `Bearer ${slowKey}`,
      });
      // The header of an 8 MB message without its body.
      stream.write(Buffer.of(0, 0, 0x80, 0, 0));
      const said: IncomingHttpHeaders = {};
      stream.on('response', (headers) => Object.assign(said, headers));
      stream.on('trailers', (headers) => Object.assign(said, headers));
      stream.on('error', () => {}).resume();
      await once(stream, 'close');
      return said['grpc-status'];
    }),
  );
  const first = Promise.race(given);
  const rows = [{ targetUrl: 'https://example.com/' }];
  for (const port of PORTS) {
    const baseUrl = `http://127.0.0.1:${signpost[port]}`;
    const batches = createClient(BatchesService, createGrpcTransport({ baseUrl, interceptors: [bearer(apiKey)] }));
    expect((await batches.createBatch({ rows })).batch?.counts?.total).toBe(1);
  }
  // `deadline_exceeded`, like the first ones in the queue.
  expect(await first).toBe('4');
  for (const session of sessions) session.destroy();
  await Promise.allSettled(given);
}, 90_000);
