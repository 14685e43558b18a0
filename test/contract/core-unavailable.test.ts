import { describe, expect, test } from 'vitest';
import { contract, type Failure, TARGET } from './client.ts';

const api = contract({ env: { CORE_TIMEOUT_MS: '1500' } });

/** How long to wait for a restarted core, in ms. */
const EVENTUALLY = { interval: 200 };

describe('while the core is unavailable or hangs', () => {
  test.each([
    ['killed', 'SIGKILL'],
    ['stopped in its tracks', 'SIGSTOP'],
  ] as const)('503 with `Retry-After` from every endpoint, and 200 once it is back: %s', async (_how, signal) => {
    const account = await api.account();
    const { id } = await account.create();
    const [core] = api.signpost.cores;
    if (!core) throw new Error('there is no core');
    if (signal === 'SIGKILL') await core.kill(signal);
    else process.kill(core.pid, signal);
    try {
      const requests = [
        ['GET', '/qr-codes', undefined],
        ['POST', '/qr-codes', JSON.stringify({ target_url: TARGET })],
        ['POST', '/qr-codes', '{'],
        ['GET', `/qr-codes/${id}`, undefined],
        ['PATCH', `/qr-codes/${id}`, '{"paused":true}'],
        ['DELETE', `/qr-codes/${id}`, undefined],
        ['GET', `/qr-codes/${id}/image`, undefined],
        ['GET', `/qr-codes/${id}/analytics`, undefined],
        ['GET', '/batches', undefined],
        ['GET', '/folders', undefined],
        ['GET', '/tags', undefined],
        ['GET', '/openapi', undefined],
      ] as const;
      const answers = await Promise.all(
        requests.map(([method, path, raw]) => account.call<Failure>(method, path, raw === undefined ? {} : { raw })),
      );
      for (const { status, headers, body } of answers) {
        expect(status).toBe(503);
        expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
        expect(body).toEqual({ error: 'The service is temporarily unavailable; try again.' });
      }
    } finally {
      if (signal === 'SIGKILL') await core.restart();
      else process.kill(core.pid, 'SIGCONT');
    }
    await expect.poll(async () => (await account.call('GET', '/tags')).status, EVENTUALLY).toBe(200);
  });
});
