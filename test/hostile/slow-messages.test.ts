import { once } from 'node:events';
import { connect as http2Connect, type IncomingHttpHeaders } from 'node:http2';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { decodeId } from '../../common/contract/ids.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { bearer } from '../../src/rpc/rpc-suite.fixture.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';

let signpost: Signpost;
let slowKey: string;
let apiKey: string;
beforeAll(async () => {
  signpost = await startSignpost({ gateways: 0 });
  [{ apiKey: slowKey }, { apiKey }] = await Promise.all([
    signpost.createAccount({ plan: Plan.ENTERPRISE }),
    signpost.createAccount({ plan: Plan.ENTERPRISE }),
  ]);
});

const PORTS = ['corePort', 'grpcPort'] as const;
/** Many times what an account may send concurrently. */
const SLOW = 50;

/** The connections that wait for a lock. */
const WAITING = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;

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
});

describe.each([
  ['gRPC', 'grpcPort', createGrpcTransport],
  ['Connect', 'corePort', createConnectTransport],
] as const)('over %s', (_name, port, createTransport) => {
  const transport = (key: string) =>
    createTransport({ baseUrl: `http://127.0.0.1:${signpost[port]}`, httpVersion: '2', interceptors: [bearer(key)] });

  test('batches of one account that can’t be stored yet leave connections to Postgres for other accounts', async () => {
    const blocked = await signpost.createAccount({ plan: Plan.ENTERPRISE });
    const pool = new pg.Pool({ connectionString: signpost.databaseUrl });
    onTestFinished(() => pool.end());
    const waiting = async () => (await pool.query(WAITING)).rowCount;
    const blocker = await pool.connect();
    await blocker.query('begin');
    await blocker.query('select from code_counts where account_id = $1 for update', [
      decodeId('acct', blocked.accountId),
    ]);
    const batches = createClient(BatchesService, transport(blocked.apiKey));
    const rows = [{ targetUrl: 'https://example.com/' }];
    const stored = Promise.all(Array.from({ length: SLOW }, () => batches.createBatch({ rows })));
    stored.catch(() => undefined);
    try {
      await expect.poll(waiting).toBe(2);
      const codes = createClient(CodesService, transport(apiKey));
      expect((await codes.createCode({ targetUrl: 'https://example.com/' })).code?.shortCode).toBeDefined();
      expect(await waiting()).toBe(2);
    } finally {
      await blocker.query('rollback');
      blocker.release();
    }
    expect((await stored).map(({ batch }) => batch?.counts?.total)).toEqual(Array(SLOW).fill(1));
  });
});

test('a caller that does not read its answers gets its next turn all the same', async () => {
  const { apiKey: key } = await signpost.createAccount({ plan: Plan.ENTERPRISE });
  const session = http2Connect(`http://127.0.0.1:${signpost.corePort}`, { settings: { initialWindowSize: 0 } });
  onTestFinished(() => session.destroy());
  const headers = { 'content-type': 'application/proto', authorization: `Bearer ${key}` };
  for (let answered = 0; answered < 4; answered++) {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/signpost.batches.v1.BatchesService/CreateBatch',
      ...headers,
    });
    stream.end();
    const [answer] = await once(stream, 'response');
    expect(answer[':status']).toBe(400);
  }
});
