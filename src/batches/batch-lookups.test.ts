import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { AnalyticsService } from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { startSignpost } from '../../test/harness/processes.ts';

test('a report of a batch counts the scans of its codes, except deleted ones', async () => {
  const signpost = await startSignpost();
  const [owner, other] = [await signpost.createAccount(), await signpost.createAccount()];
  const batches = internal(signpost, BatchesService, owner.accountId);
  const targets = ['https://example.com/1', 'https://example.com/2', 'nonsense'];
  const { batch } = await batches.createBatch({ rows: targets.map((targetUrl) => ({ targetUrl })) });
  const id = batch?.id ?? '';
  const { rows } = await batches.getBatch({ id });
  const scan = async (url = '') => expect((await fetch(url, { redirect: 'manual' })).status).toBe(302);
  for (const url of [rows[0]?.scanUrl, rows[0]?.scanUrl, rows[1]?.scanUrl]) await scan(url);
  const window = { from: timestampFromMs(Date.now() - 86_400_000), to: timestampFromMs(Date.now()) };
  const report = (accountId: string) =>
    internal(signpost, AnalyticsService, accountId).getScanReport({ scope: { case: 'batchId', value: id }, ...window });
  const scans = async () => (await report(owner.accountId)).figures?.scans;
  await expect.poll(scans).toBe(3n);
  await internal(signpost, CodesService, owner.accountId).deleteCode({ id: rows[0]?.codeId ?? '' });
  expect(await scans()).toBe(1n);
  await expect(report(other.accountId)).rejects.toMatchObject({ code: Code.NotFound });
});
