import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import pg from 'pg';
import { pino } from 'pino';
import { describe, expect, inject, test } from 'vitest';
import { openKafkaLog } from '../../common/log/kafka.ts';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { afterFile } from '../harness/after-file.ts';
import { type Broker, startKafka } from '../harness/kafka.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';

const EVENTUALLY = { timeout: 60_000, interval: 100 };
// A broker that this run did not start must not be stopped.
const isOwnBroker = inject('kafkaBrokers') !== null && !process.env.KAFKA_BROKERS;

function health({ corePort }: Signpost, service: string): Promise<Status | undefined> {
  const transport = createConnectTransport({ baseUrl: `http://127.0.0.1:${corePort}`, httpVersion: '1.1' });
  return createClient(Health, transport)
    .check({ service })
    .then(({ status }) => status);
}

async function caller(signpost: Signpost) {
  const { apiKey } = await signpost.createAccount();
  return (method: string, path: string, json?: unknown) =>
    fetch(`${signpost.url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}` },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
}

interface Code {
  readonly id: string;
  readonly short_code: string;
  readonly scan_count: number;
}

describe.skipIf(!isOwnBroker)('a core with every role, started while Kafka', () => {
  test.each([
    ['is down', (broker: Broker) => broker.kill(), (broker: Broker) => broker.start()],
    ['accepts connections without answering', (broker: Broker) => broker.pause(), (broker: Broker) => broker.resume()],
  ])(
    '%s: it starts, answers, reports it, and publishes the outbox once Kafka is available',
    async (_, disrupt, restore) => {
      const broker = await startKafka();
      afterFile(() => broker.stop());
      await disrupt(broker);
      const signpost = await startSignpost({ kafkaBrokers: broker.brokers, gateways: 2 });
      const call = await caller(signpost);
      const created = await call('POST', '/qr-codes', { target_url: 'https://example.com/' });
      expect(created.status).toBe(201);
      const { data: code } = (await created.json()) as { data: Code };
      const target = 'https://example.com/winter';
      expect((await call('PATCH', `/qr-codes/${code.id}`, { target_url: target })).status).toBe(200);
      const scan = async (gateway: number) => {
        const { status, headers } = await fetch(`${signpost.gateways[gateway]?.url}/r/${code.short_code}`, {
          redirect: 'manual',
        });
        return [status, headers.get('location')];
      };
      expect(await scan(0)).toEqual([302, target]);
      // The other gateway has no route yet and looks the code up.
      expect(await scan(1)).toEqual([302, target]);

      expect(await health(signpost, '')).toBe(Status.SERVING);
      expect(await health(signpost, 'relay')).toBe(Status.NOT_SERVING);
      const lines = ((await signpost.cores[0]?.log()) ?? '').split('\n');
      const logged = lines.find((line) =>
        line.includes('the log is unavailable: events and routes wait in the outbox'),
      );
      expect(JSON.parse(logged ?? '{}')).toMatchObject({ level: 50 });
      const client = new pg.Client({ connectionString: signpost.databaseUrl });
      await client.connect();
      afterFile(() => client.end());
      const waiting = async () => Number((await client.query('select count(*) as n from outbox_waiting')).rows[0].n);
      expect(await waiting()).toBe(4);

      await restore(broker);
      await expect.poll(waiting, EVENTUALLY).toBe(0);
      await expect.poll(() => health(signpost, 'relay'), EVENTUALLY).toBe(Status.SERVING);
      // Kafka's consumers work too: the route reaches the other gateway, the scans reach the recorder.
      await call('DELETE', `/qr-codes/${code.id}`);
      await expect.poll(() => scan(1), EVENTUALLY).toEqual([410, null]);
      const { data: next } = (await (await call('POST', '/qr-codes', { target_url: target })).json()) as { data: Code };
      await fetch(`${signpost.url}/r/${next.short_code}`, { redirect: 'manual' });
      const counted = async () =>
        ((await (await call('GET', `/qr-codes/${next.id}`)).json()) as { data: Code }).data.scan_count;
      await expect.poll(counted, EVENTUALLY).toBe(1);
      await signpost.stop();
    },
    240_000,
  );
});

describe.skipIf(!isOwnBroker)('a core whose Kafka', () => {
  test('has a topic with too short a retention does not start, and names it', async () => {
    const broker = await startKafka();
    afterFile(() => broker.stop());
    const log = openKafkaLog({ brokers: [broker.brokers], clientId: 'test', logger: pino({ level: 'silent' }) });
    await log.ensureTopics([{ name: 'signpost.events.v1', partitions: 12, retention: 60_000 }]);
    await log.close();
    await expect(startSignpost({ kafkaBrokers: broker.brokers })).rejects.toThrow(
      /topic signpost\.events\.v1 exists and has retention\.ms=60000/,
    );
  });
});
