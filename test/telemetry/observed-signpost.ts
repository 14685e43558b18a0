import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { expect, vi } from 'vitest';
import { type Dashboard, startDashboard } from '../../dashboard/server/dashboard.fixture.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { ACCEPT, startReceiver } from '../../src/webhooks/receiver.fixture.ts';
import { type Signpost, type SignpostOptions, startSignpost } from '../harness/processes.ts';
import { type Family, scrape, sumOf } from '../harness/scrape.ts';

/**
 * A Signpost whose core, gateway and dashboard serve their metrics, and which has done a bit of everything that is
 * measured.
 */
export interface ObservedSignpost {
  readonly signpost: Signpost;
  readonly dashboard: Dashboard;
  readonly corePort: number;
  readonly gatewayPort: number;
  readonly dashboardPort: number;
  /** The metrics of all three. */
  families(): Promise<readonly Family[]>;
}

/** Starts it, makes API calls, scans, and gets a webhook, until all of it is measured. */
export async function startObserved(options: SignpostOptions = {}): Promise<ObservedSignpost> {
  const [corePort, gatewayPort, dashboardPort] = [await freePort(), await freePort(), await freePort()];
  const signpost = await startSignpost({
    ...options,
    env: { METRICS_PORT: String(corePort), WEBHOOKS_ALLOW_PRIVATE: 'true', ...options.env },
    gatewayEnv: { METRICS_PORT: String(gatewayPort), GATEWAY_WORKERS: '2', ...options.gatewayEnv },
  });
  const dashboard = await startDashboard(signpost, { env: { METRICS_PORT: String(dashboardPort) } });
  const families = async () => (await Promise.all([corePort, gatewayPort, dashboardPort].map(scrape))).flat();
  await exercise(signpost);
  const done = async () => {
    const measured = await families();
    return (
      sumOf(measured, 'signpost_webhooks_attempt_duration_seconds_count') > 0 &&
      sumOf(measured, 'signpost_scans_total', { signpost_scan_stage: 'recorded' }) > 0 &&
      sumOf(measured, 'signpost_gateway_routes_change_latency_seconds_count') > 0
    );
  };
  await vi.waitUntil(done, { timeout: 20_000, interval: 200 });
  return { signpost, dashboard, corePort, gatewayPort, dashboardPort, families };
}

async function exercise(signpost: Signpost): Promise<void> {
  const receiver = await startReceiver(ACCEPT);
  const { accountId, apiKey } = await signpost.createAccount();
  const webhooks = createClient(
    WebhooksService,
    createConnectTransport({
      baseUrl: `http://${LOOPBACK}:${signpost.corePort}`,
      httpVersion: '1.1',
      interceptors: [
        (next) => (request) => {
          request.header.set('authorization', `Bearer ${signpost.serviceToken}`);
          request.header.set('signpost-account', accountId);
          return next(request);
        },
      ],
    }),
  );
  await webhooks.createEndpoint({ url: `${receiver.url}/`, events: ['qr.created'] });
  const headers = { authorization: `Bearer ${apiKey}` };
  const created = await fetch(`${signpost.url}/api/v1/qr-codes`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ target_url: 'https://example.com/' }),
  });
  expect(created.status).toBe(201);
  const { data } = (await created.json()) as { data: { scan_url: string } };
  expect((await fetch(data.scan_url, { redirect: 'manual' })).status).toBe(302);
  expect((await fetch(`${signpost.url}/api/v1/tags`, { headers: { authorization: 'Bearer sk_live_x' } })).status).toBe(
    401,
  );
}
