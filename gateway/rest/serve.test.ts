import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import { createCoreClients } from '../core/clients.ts';
import { limitAttempts } from '../http/address-limits.ts';
import { type ApiOptions, createApi } from './api.ts';
import { limitAuthenticationFailures } from './authentication-attempts.ts';

const uncounted = () => {};

/** Serves the API until the test ends; returns its address. */
async function serveApi(options: Pick<ApiOptions, 'core' | 'logger' | 'attempts'>): Promise<string> {
  const api = await createApi({ ...options, publicUrl: 'http://a.example', onRoute: async () => {} });
  const server = createServer((request, response) => api.handle(request, response)).listen(0, LOOPBACK);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return `http://${LOOPBACK}:${(server.address() as AddressInfo).port}/api/v1`;
}

test('while no core answers, many requests are one line of the log, with their number', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { lines, logger } = recordingLogger();
  const core = createCoreClients({ addresses: [`${LOOPBACK}:${await freePort()}`], timeoutMs: 500 });
  onTestFinished(() => core.close());
  const attempts = limitAuthenticationFailures(limitAttempts(1), () => LOOPBACK, uncounted);
  const url = await serveApi({ core, logger, attempts });
  const headers = { authorization: `Bearer sk_live_${'a'.repeat(43)}`, connection: 'close' };
  const ask = async () => (await fetch(`${url}/folders`, { headers })).status;
  const all = async (times: number) =>
    expect(await Promise.all(Array.from({ length: times }, ask))).toEqual(Array(times).fill(503));

  await all(20);
  expect(lines.map((line) => JSON.parse(line))).toEqual([expect.objectContaining({ level: 50, requests: 1 })]);
  vi.advanceTimersByTime(10_000);
  await all(1);
  expect(lines).toHaveLength(2);
  expect(JSON.parse(lines[1] ?? '')).toMatchObject({ requests: 20, request_id: expect.any(String) });
});

// Source: docs/contract.md, "Idempotency".
test('an answer without a call to the core says that it is no replay, if the request had a key', async () => {
  const core = createCoreClients({ addresses: [`${LOOPBACK}:${await freePort()}`], timeoutMs: 500 });
  onTestFinished(() => core.close());
  const limit = { waitOf: () => 5, count: uncounted };
  const attempts = limitAuthenticationFailures(limit, () => LOOPBACK, uncounted);
  const url = await serveApi({ core, logger: recordingLogger().logger, attempts });
  const create = async (headers: Record<string, string>) => {
    const response = await fetch(`${url}/qr-codes`, { method: 'POST', headers, body: '{}' });
    return [response.status, response.headers.get('idempotent-replay')];
  };
  expect(await create({ 'idempotency-key': 'k' })).toEqual([429, 'false']);
  expect(await create({})).toEqual([429, null]);
});
