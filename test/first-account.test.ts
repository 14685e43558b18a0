import { rm } from 'node:fs/promises';
import { onTestFinished, test } from 'vitest';
import { startReceiver } from '../src/webhooks/receiver.fixture.ts';
import { runPage } from './harness/console-page.ts';
import { startDns } from './harness/dns.ts';
import { startSignpost } from './harness/processes.ts';

test('the page about a new account shows what really happens, line by line', async () => {
  const [dns, receiver] = [await startDns(), await startReceiver()];
  onTestFinished(() => rm('/tmp/tables.zip', { force: true }));
  const env = { PUBLIC_URL: 'https://sign.example', DNS_RESOLVERS: dns.address, WEBHOOKS_ALLOW_PRIVATE: 'true' };
  const signpost = await startSignpost({ env });
  await runPage('docs/first-account.md', { signpost, dns, variables: { RECEIVER: receiver.url } });
}, 120_000);
