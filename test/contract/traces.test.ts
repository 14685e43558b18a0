import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { expect, test } from 'vitest';
import { startCollector } from '../telemetry/collector.ts';
import { contract, type One, TARGET } from './client.ts';

const collector = await startCollector();
const api = contract({
  env: {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_METRICS_EXPORTER: 'none',
    OTEL_BSP_SCHEDULE_DELAY: '100',
  },
});

const EVENTUALLY = { interval: 50 };

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
  const childOf = (parent: string | undefined, name?: string) =>
    collector.spans.find(
      (span) => span.traceId === traceId && span.parentSpanId === parent && (name === undefined || span.name === name),
    );
  const request = () => childOf(callerId);
  const call = () => childOf(request()?.spanId, rpc);
  await expect.poll(() => childOf(call()?.spanId, rpc)?.resource['service.name'], EVENTUALLY).toBe('signpost-core');
  expect(request()?.resource['service.name']).toBe('signpost-gateway');
});

test('and on to readers of the log with the event and route of a change, without the caller’s baggage', async () => {
  const account = await api.account();
  const traceId = randomBytes(16).toString('hex');
  const headers = { traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-01`, baggage: 'user=someone' };
  const { body } = await account.call<One>('POST', '/qr-codes', { json: { target_url: TARGET }, headers });
  const client = new pg.Client({ connectionString: api.signpost.databaseUrl });
  await client.connect();
  const carried = () =>
    client
      .query<{ trace: string | null; baggage: string | null }>(
        `select headers ->> 'traceparent' as trace, headers ->> 'baggage' as baggage from log_records where key in ($1, $2)`,
        [body.data.id, `code:${body.data.short_code}`],
      )
      .then(({ rows }) => rows.map(({ trace, baggage }) => [trace?.split('-')[1], baggage]));
  await expect.poll(carried, EVENTUALLY).toEqual([
    [traceId, null],
    [traceId, null],
  ]);
  await client.end();
});

test.each(['nonsense', '00-0000-00-01', `00-${'g'.repeat(32)}-${'0'.repeat(16)}-01`, '', 'x'.repeat(4_000)])(
  'an invalid traceparent is ignored: %j',
  async (traceparent) => {
    const account = await api.account();
    expect((await account.call('GET', '/tags', { headers: { traceparent } })).status).toBe(200);
  },
);
