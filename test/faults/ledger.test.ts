import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { beforeAll, expect, test } from 'vitest';
import { ScansService } from '../../proto/gen/signpost/scans/v1/scans_pb.ts';
import { contract } from '../contract/client.ts';
import { internal } from '../contract/internal.ts';
import type { Process } from '../harness/processes.ts';
import { childrenOf, expectCounted, killWithChildren, scanUrl, startVisitors } from './visitors.ts';

const EVENTUALLY = { interval: 200 };

const running = contract({ env: { GATEWAY_WORKERS: '2' } });
let account: Awaited<ReturnType<typeof running.account>>;
let gateway: Process;
let core: Process;
beforeAll(async () => {
  account = await running.account();
  [gateway] = running.signpost.gateways as [Process];
  [core] = running.signpost.cores as [Process];
});

/** The ledger since yesterday, because a test may run past midnight. */
async function audit() {
  const { $typeName, ...figures } = await internal(running.signpost, ScansService).auditScans({
    from: timestampFromMs(Date.now() - 86_400_000),
    to: timestampFromMs(Date.now()),
  });
  return figures;
}

test('the ledger adds up exactly, whichever process was killed under load', async () => {
  const code = await account.create();
  const killers: (() => Promise<unknown>)[] = [
    async () => process.kill((await childrenOf(gateway, 'gateway/worker.ts'))[0] ?? 0, 'SIGKILL'),
    async () => process.kill((await childrenOf(gateway, 'gateway/carrier.ts'))[0] ?? 0, 'SIGKILL'),
    () => core.restart(),
    async () => {
      await killWithChildren(gateway);
      await gateway.restart();
    },
  ];
  const visitors = startVisitors(scanUrl(running.signpost, code), 8);
  for (const kill of killers) {
    const before = visitors.answered;
    await expect.poll(() => visitors.answered, EVENTUALLY).toBeGreaterThan(before + 300);
    await kill();
  }
  const before = visitors.answered;
  await expect.poll(() => visitors.answered, EVENTUALLY).toBeGreaterThan(before + 300);
  await visitors.stop();
  await expectCounted(running.signpost.databaseUrl, code, [visitors]);
  await expect.poll(async () => (await audit()).waiting, EVENTUALLY).toBe(0n);
  const { answered, spooled, published, recorded, duplicates, rows, counted, differences } = await audit();
  expect(recorded).toBeGreaterThanOrEqual(visitors.answered);
  expect({ answered, spooled, rows, counted }).toEqual({
    answered: recorded,
    spooled: recorded,
    rows: recorded,
    counted: recorded,
  });
  expect(differences).toEqual([]);
  // Records shipped twice were recognised as duplicates.
  expect(duplicates).toBe(published - recorded);
});
