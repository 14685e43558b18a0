import { randomUUID } from 'node:crypto';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { Webhook } from 'standardwebhooks';
import { describe, expect, inject, test, vi } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { startReceiver } from '../../src/webhooks/receiver.fixture.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';
import { wrongClock } from '../harness/wrong-clock.ts';

const EVENTUALLY = { timeout: 25_000, interval: 25 };
const ALL = ['qr.created', 'qr.updated', 'qr.archived'];

function webhooksOf({ cores, serviceToken }: Signpost, account: string) {
  const transport = createConnectTransport({
    baseUrl: cores[0]?.url ?? '',
    httpVersion: '1.1',
    interceptors: [
      (next) => (request) => {
        request.header.set('authorization', `Bearer ${serviceToken}`);
        request.header.set('signpost-account', account);
        return next(request);
      },
    ],
  });
  return createClient(WebhooksService, transport);
}

describe.each([
  ['Postgres, and cores whose clocks are an hour behind', undefined, { NODE_OPTIONS: wrongClock(-3_600_000) }],
  ['Kafka', inject('kafkaBrokers') ?? undefined, { KAFKA_PREFIX: `t${randomUUID()}.` }],
])('webhooks over the log in %s', (name, kafkaBrokers, env) => {
  test.skipIf(name === 'Kafka' && kafkaBrokers === undefined)(
    'what a key changes reaches the endpoints of its account, signed, with the resource as REST shows it',
    async () => {
      const options = kafkaBrokers === undefined ? {} : { kafkaBrokers };
      const signpost = await startSignpost({
        ...options,
        cores: 2,
        env: { ...env, WEBHOOKS_ALLOW_PRIVATE: 'true' },
        gatewayEnv: { NODE_OPTIONS: '' },
      });
      const { accountId, apiKey } = await signpost.createAccount();
      const receiver = await startReceiver();
      const webhooks = webhooksOf(signpost, accountId);
      const { secret } = await webhooks.createEndpoint({ url: `${receiver.url}/hook`, events: ALL });
      const call = async (method: string, path: string, json?: unknown) => {
        const headers = { authorization: `Bearer ${apiKey}`, 'idempotency-key': randomUUID() };
        const body = json === undefined ? null : JSON.stringify(json);
        const response = await fetch(`${signpost.url}/api/v1/qr-codes${path}`, { method, headers, body });
        expect(response.ok).toBe(true);
        return ((await response.json()) as { data: CodeJson }).data;
      };
      const created = await call('POST', '', { target_url: 'https://example.com/menu', name: 'Table 4' });
      const updated = await call('PATCH', `/${created.id}`, { name: 'Table 5', paused: true });
      await call('DELETE', `/${created.id}`);
      // The endpoint's test event, before anything else, and what followed.
      await vi.waitFor(() => expect(receiver.received).toHaveLength(4), EVENTUALLY);
      const got = receiver.received.map(({ body, headers }) => {
        const event = new Webhook(secret).verify(body, headers as Record<string, string>);
        return event as { type: string; timestamp: string; data: Record<string, unknown> };
      });
      expect(got[0]?.type).toBe('webhook.test');
      const short = `/r/${created.short_code}`;
      const find = (type: string) => got.find((event) => event.type === type)?.data;
      expect(find('qr.created')).toEqual({ ...created, short });
      expect(find('qr.updated')).toEqual({ ...updated, short, changed: expect.arrayContaining(['name', 'paused']) });
      expect(find('qr.archived')).toMatchObject({ id: created.id, short });
      await signpost.stop();
    },
    60_000,
  );
});
