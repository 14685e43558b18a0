import { randomBytes } from 'node:crypto';
import { strFromU8, unzipSync } from 'fflate';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { decodeId, encodeId, newUuid } from '../../common/contract/ids.ts';
import { BatchesService, BatchStatus } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { ImageFormat } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { insertAccount } from '../../test/harness/insert-account.ts';
import { cursors } from '../calls/cursors.ts';
import { platformHosts } from '../codes/fields/platform-hosts.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { requestWindow, workStreams } from '../jobs/progress.ts';
import { reasonOf } from '../rpc/rpc-suite.fixture.ts';
import { serviceClient } from '../rpc/service-client.fixture.ts';
import { advance as advanceBatch } from './advance.ts';
import { batchesService } from './service.ts';

const CONNECTIONS = 2;
const BATCHES = CONNECTIONS + 1;

async function newClient({ windowMs = 0 } = {}) {
  const database = await openDatabase((await freshDatabase()).url, CONNECTIONS, entities);
  const { pool, close } = database;
  onTestFinished(close);
  const id = await insertAccount(pool, { plan: 'enterprise' });
  await pool.query('insert into code_counts (account_id) values ($1)', [id]);
  const { signal } = new AbortController();
  const service = batchesService({
    database,
    cursors: cursors(randomBytes(32)).byId,
    platformUrl: 'https://signpost.example',
    isPlatformHost: platformHosts('https://signpost.example', []),
    window: requestWindow({ windowMs, connections: 1, logger: pino({ level: 'silent' }), stopping: signal }),
    watch: workStreams(signal),
  });
  const clientOf = (account: string) => serviceClient(BatchesService, service, { id: account });
  const advance = (batch: string) => advanceBatch(database.orm, 'https://signpost.example', batch);
  return { client: clientOf(id), clientOf, accountId: id, pool, advance };
}

test('more concurrent batches than the pool has connections are all staged, including the look-ups of their targets', async () => {
  const { client } = await newClient();
  // Only targets that look like scan URLs are looked up.
  const rows = Array.from({ length: 100 }, (_, nth) => ({ targetUrl: `https://other-${nth}.example/r/abcdefg` }));
  const staged = await Promise.all(Array.from({ length: BATCHES }, () => client.createBatch({ rows })));
  expect(staged.map(({ batch }) => batch?.counts?.total)).toEqual(Array(BATCHES).fill(rows.length));
});

test('a batch that no worker completes in time is answered as unfinished before the deadline of its call', async () => {
  const { client } = await newClient({ windowMs: 60_000 });
  const { batch } = await client.createBatch({ rows: [{ targetUrl: 'https://example.com' }] }, { timeoutMs: 3_000 });
  expect(batch).toMatchObject({ status: BatchStatus.PROCESSING, counts: { pending: 1 } });
});

test('a row whose fault quotes a NUL fails alone', async () => {
  const { client } = await newClient();
  const rows = [{ targetUrl: 'https://example.com' }, { fault: 'a\0b is none of the fields.' }];
  const { batch } = await client.createBatch({ rows });
  const { rows: failed } = await client.getBatch({ id: batch?.id ?? '', limit: 2 });
  expect(failed[1]).toMatchObject({ reason: 'a\u2400b is none of the fields.' });
});

test('a batch whose rows all fail is completed at once, and announced', async () => {
  const { client, pool } = await newClient();
  const { batch } = await client.createBatch({ rows: [{ targetUrl: 'nonsense' }] });
  expect(batch?.status).toBe(BatchStatus.COMPLETED);
  const { rows } = await pool.query(`select headers->>'ce_type' as type from outbox`);
  expect(rows).toEqual([{ type: 'bulk.completed' }]);
});

test('a cursor of another account is rejected', async () => {
  const { client, clientOf } = await newClient();
  for (let n = 0; n < 2; n++) await client.createBatch({ rows: [{ targetUrl: 'nonsense' }] });
  const { nextCursor: cursor = '' } = await client.listBatches({ limit: 1 });
  expect((await client.listBatches({ cursor })).batches).toHaveLength(1);
  expect(await reasonOf(clientOf(newUuid()).listBatches({ cursor }))).toBe('INVALID_CURSOR');
});

test('an export has the domain and the colours of its batch, and fails while the domain does not resolve', async () => {
  const { client, accountId, pool, advance } = await newClient();
  const domainId = newUuid();
  await pool.query(
    `insert into domains (id, account_id, hostname, state, token) values ($1, $2, 'qr.example', 'live', 'token')`,
    [domainId, accountId],
  );
  const { batch } = await client.createBatch({
    rows: [{ targetUrl: 'https://example.com/' }],
    domainId: encodeId('domain', domainId),
    design: { foregroundColor: '#102040', backgroundColor: '#fedcba' },
  });
  await advance(decodeId('batch', batch?.id ?? '') ?? '');
  const exported = () => Array.fromAsync(client.exportBatch({ id: batch?.id ?? '', format: ImageFormat.SVG }));
  const [image, manifest] = Object.values(unzipSync(Buffer.concat((await exported()).map(({ chunk }) => chunk))));
  expect(strFromU8(manifest ?? new Uint8Array())).toContain(',https://qr.example/r/');
  expect(strFromU8(image ?? new Uint8Array())).toMatch(/fedcba.*102040/s);
  await pool.query(`update domains set state = 'failing'`);
  expect(await reasonOf(exported())).toBe('DOMAIN_NOT_RESOLVED');
});
