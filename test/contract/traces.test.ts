import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { expect, test } from 'vitest';
import type { Process } from '../harness/processes.ts';
import type { PrintedSpan } from '../harness/tracing.ts';
import { contract, type One, TARGET } from './client.ts';

const tracing = pathToFileURL(join(import.meta.dirname, '../harness/tracing.ts')).href;
const api = contract({ env: { NODE_OPTIONS: `--import=${tracing}` } });

const EVENTUALLY = { timeout: 10_000, interval: 50 };

async function spansOf(process: Process | undefined, traceId: string): Promise<PrintedSpan[]> {
  const lines = ((await process?.log()) ?? '').split('\n').filter((line) => line.startsWith('{"span"'));
  return lines.map((line) => JSON.parse(line) as PrintedSpan).filter((span) => span.traceId === traceId);
}

test.each([
  [
    'a change',
    'POST',
    '/qr-codes',
    JSON.stringify({ target_url: TARGET }),
    'signpost.codes.v1.CodesService/CreateCode',
  ],
  ['a read', 'GET', '/qr-codes/qr_none', undefined, 'signpost.codes.v1.CodesService/GetCode'],
  ['what the gateway turns down', 'POST', '/qr-codes', '{', 'signpost.access.v1.AdmissionService/Refuse'],
])('a trace goes from the caller through the gateway to the core: %s', async (_what, method, path, raw, rpc) => {
  const account = await api.account();
  const [traceId, callerId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  const headers = { traceparent: `00-${traceId}-${callerId}-01` };
  await account.call(method, path, { ...(raw === undefined ? {} : { raw }), headers });
  const [gateway, core] = [api.signpost.gateways[0], api.signpost.cores[0]];
  // The route of a change returns to the gateway over the log, in the same trace.
  const ofCaller = async () => (await spansOf(gateway, traceId)).filter(({ parentId }) => parentId === callerId);
  await expect.poll(ofCaller, EVENTUALLY).toHaveLength(1);
  await expect.poll(async () => (await spansOf(core, traceId)).some(({ span }) => span === rpc), EVENTUALLY).toBe(true);
  const [request] = await ofCaller();
  const call = (await spansOf(core, traceId)).find(({ span }) => span === rpc);
  expect(call?.parentId).toBe(request?.spanId);
});

test('and on to readers of the log with the event and route of a change', async () => {
  const account = await api.account();
  const traceId = randomBytes(16).toString('hex');
  const headers = { traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-01` };
  const { body } = await account.call<One>('POST', '/qr-codes', { json: { target_url: TARGET }, headers });
  const client = new pg.Client({ connectionString: api.signpost.databaseUrl });
  await client.connect();
  const carried = () =>
    client
      .query<{ trace: string | null }>(
        `select headers ->> 'traceparent' as trace from log_records where key in ($1, $2)`,
        [body.data.id, `code:${body.data.short_code}`],
      )
      .then(({ rows }) => rows.map(({ trace }) => trace?.split('-')[1]));
  await expect.poll(carried, EVENTUALLY).toEqual([traceId, traceId]);
  await client.end();
});

test.each(['nonsense', '00-0000-00-01', `00-${'g'.repeat(32)}-${'0'.repeat(16)}-01`, '', 'x'.repeat(4_000)])(
  'an invalid traceparent is ignored: %j',
  async (traceparent) => {
    const account = await api.account();
    expect((await account.call('GET', '/tags', { headers: { traceparent } })).status).toBe(200);
  },
);
