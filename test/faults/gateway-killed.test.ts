import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { contract } from '../contract/client.ts';
import type { Process } from '../harness/processes.ts';
import { counted, expectCounted, scanUrl, startVisitors, type Visitors } from './visitors.ts';

const EVENTUALLY = { interval: 50 };

const running = contract({ env: { GATEWAY_WORKERS: '2' } });
let account: Awaited<ReturnType<typeof running.account>>;
let gateway: Process;
beforeAll(async () => {
  account = await running.account();
  [gateway] = running.signpost.gateways as [Process];
});

test('kill -9 of all its processes under load, repeatedly: every answered scan is counted, none twice', async () => {
  const code = await account.create();
  const visitors = startVisitors(scanUrl(running.signpost, code), 32);
  for (let round = 0; round < 2; round++) {
    const before = visitors.answered;
    await expect.poll(() => visitors.answered, EVENTUALLY).toBeGreaterThan(before + 1_000);
    process.kill(-gateway.pid, 'SIGKILL');
    await gateway.restart();
  }
  const before = visitors.answered;
  await expect.poll(() => visitors.answered, EVENTUALLY).toBeGreaterThan(before + 100);
  await visitors.stop();
  await expectCounted(running.signpost.databaseUrl, code, [visitors]);
});

describe('SIGTERM under load loses nothing: every request is answered, and exactly the answered scans are counted', () => {
  const CASES = [
    // A kept-alive connection gets one last response, and new ones are refused.
    { visitors: 'that keep their connections', keepAlive: true, errors: ['ECONNREFUSED'] },
    { visitors: 'with a connection for every scan', keepAlive: false, errors: ['ECONNREFUSED'] },
  ];

  test.each(CASES)(
    'visitors $visitors',
    async ({ keepAlive, errors }) => {
      const code = await account.create();
      const all: Visitors[] = [];
      for (let round = 0; round < 2; round++) {
        const visitors = startVisitors(scanUrl(running.signpost, code), 32, keepAlive);
        all.push(visitors);
        await expect.poll(() => visitors.answered, EVENTUALLY).toBeGreaterThan(1_000);
        await gateway.kill('SIGTERM');
        await visitors.stop();
        expect(errors).toEqual(expect.arrayContaining([...visitors.failed.keys()]));
        expect([...visitors.others]).toEqual([]);
        await gateway.restart();
      }
      await expectCounted(running.signpost.databaseUrl, code, all);
      const answered = all.reduce((sum, visitors) => sum + visitors.answered, 0);
      expect((await counted(running.signpost.databaseUrl, code)).scans).toBe(answered);
    },
    120_000,
  );

  test('a request that is partly received is answered', async () => {
    const code = await account.create();
    const sockets = await Promise.all(Array.from({ length: 16 }, () => openConnection(gateway.url)));
    const head = `GET /r/${code.short_code} HTTP/1.1\r\nhost: signpost.example\r\n\r\n`;
    for (const [index, { socket }] of sockets.entries()) socket.write(head.slice(0, 1 + index * 3));
    await sleep(200);
    const stopped = gateway.kill('SIGTERM');
    await sleep(200);
    for (const [index, { socket }] of sockets.entries()) socket.write(head.slice(1 + index * 3));
    // With `connection: close` or, on a busy machine, shortly before the worker begins to stop; then it ends the
    // connection.
    const answers = await Promise.all(sockets.map(({ received }) => received));
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 302 /);
    await stopped;
    await gateway.restart();
    await expectCounted(running.signpost.databaseUrl, code, [{ sent: sockets.length, answered: sockets.length }]);
  });
});

/** Opens a connection; `received` resolves with everything received until it is closed. */
async function openConnection(url: string): Promise<{ socket: Socket; received: Promise<string> }> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return { socket, received: text(socket) };
}
