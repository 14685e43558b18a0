import { beforeAll, expect, test } from 'vitest';
import { contract } from '../contract/client.ts';
import type { Process } from '../harness/processes.ts';
import { expectCounted, type Readers, scanUrl, startReaders } from './readers.ts';

const EVENTUALLY = { timeout: 20_000, interval: 50 };

const running = contract({ env: { GATEWAY_WORKERS: '2' } });
let account: Awaited<ReturnType<typeof running.account>>;
let gateway: Process;
beforeAll(async () => {
  account = await running.account();
  [gateway] = running.signpost.gateways as [Process];
});

test('kill -9 of all its processes under load, again and again: every scan that was answered is counted, none twice', async () => {
  const code = await account.create();
  const readers = startReaders(scanUrl(running.signpost, code), 32);
  for (let round = 0; round < 3; round++) {
    const before = readers.answered;
    await expect.poll(() => readers.answered, EVENTUALLY).toBeGreaterThan(before + 1_000);
    process.kill(-gateway.pid, 'SIGKILL');
    await gateway.restart();
  }
  const before = readers.answered;
  await expect.poll(() => readers.answered, EVENTUALLY).toBeGreaterThan(before + 100);
  await readers.stop();
  await expectCounted(running.signpost.databaseUrl, code, [readers]);
}, 120_000);

test('SIGTERM under load drops nothing: what was asked is answered, and what was answered is counted', async () => {
  const code = await account.create();
  const all: Readers[] = [];
  for (let round = 0; round < 3; round++) {
    const readers = startReaders(scanUrl(running.signpost, code), 32);
    all.push(readers);
    await expect.poll(() => readers.answered, EVENTUALLY).toBeGreaterThan(1_000);
    await gateway.kill('SIGTERM');
    await readers.stop();
    // A connection that is refused was never taken.
    expect([...readers.failed.keys()].filter((code) => code !== 'ECONNREFUSED')).toEqual([]);
    expect([...readers.others]).toEqual([]);
    await gateway.restart();
  }
  await expectCounted(running.signpost.databaseUrl, code, all);
}, 120_000);
