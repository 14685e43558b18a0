import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import { type Client, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import pg from 'pg';
import { beforeAll, expect, test } from 'vitest';
import { type Entry, fromBuffer, type ZipFile } from 'yauzl';
import { readFailure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService, BatchStatus } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { ImageFormat } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { afterFile } from '../../test/harness/after-file.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';

let signpost: Signpost;
let batches: Client<typeof BatchesService>;
let folder: string;
let apiKey: string;

beforeAll(async () => {
  signpost = await startSignpost({ env: { BATCH_WINDOW_MS: '0' } });
  ({ apiKey } = await signpost.createAccount({ plan: Plan.ENTERPRISE }));
  const transport = createConnectTransport({ baseUrl: `http://127.0.0.1:${signpost.corePort}`, httpVersion: '1.1' });
  const headers = { authorization: `Bearer ${apiKey}` };
  const client = createClient(BatchesService, transport);
  batches = {
    createBatch: (request) => client.createBatch(request, { headers }),
    getBatch: (request) => client.getBatch(request, { headers }),
    listBatches: (request) => client.listBatches(request, { headers }),
    watchBatch: (request) => client.watchBatch(request, { headers }),
    exportBatch: (request, options) => client.exportBatch(request, { headers, ...options }),
  };
  folder = await mkdtemp(join(tmpdir(), 'signpost-export-'));
  afterFile(() => rm(folder, { recursive: true, force: true }));
});

/** Creates a batch and waits until it has completed; returns its id. */
async function completedBatch(rows: number, name = (n: number) => `Table ${n}`): Promise<string> {
  const { batch } = await batches.createBatch({
    rows: [
      ...Array.from({ length: rows }, (_, n) => ({
        targetUrl: `https://example.com/${n}`,
        name: name(n),
        externalRef: `T-${n}`,
      })),
      { targetUrl: 'nonsense' },
    ],
    design: { foregroundColor: '#102040' },
  });
  const id = batch?.id ?? '';
  for await (const { batch: seen } of batches.watchBatch({ id })) {
    if (seen?.status === BatchStatus.COMPLETED) return id;
  }
  throw new Error('the watch ended before the batch');
}

async function exportFiles(request: { id: string; format?: ImageFormat; size?: number }): Promise<Map<string, Buffer>> {
  const chunks: Uint8Array[] = [];
  let before = 0;
  for await (const { chunk, images } of batches.exportBatch(request)) {
    expect(chunk.length).toBeLessThanOrEqual(64 * 1024);
    expect(images).toBeGreaterThanOrEqual(before);
    before = images;
    chunks.push(chunk);
  }
  const zip = (await promisify<Buffer, object, ZipFile>(fromBuffer)(Buffer.concat(chunks), {
    lazyEntries: true,
  })) as ZipFile;
  const files = new Map<string, Buffer>();
  await new Promise<void>((resolve, reject) => {
    zip.on('entry', (entry: Entry) => {
      zip.openReadStream(entry, async (error, stream) => {
        if (error) return reject(error);
        const parts: Buffer[] = [];
        for await (const part of stream) parts.push(part as Buffer);
        const content = Buffer.concat(parts);
        expect(crc32(content)).toBe(entry.crc32);
        files.set(entry.fileName, content);
        zip.readEntry();
      });
    });
    zip.on('error', reject);
    zip.on('end', () => resolve());
    zip.readEntry();
  });
  return files;
}

test('watchBatch reports the rising counts of a batch until it has completed', async () => {
  const { batch } = await batches.createBatch({
    rows: Array.from({ length: 1_000 }, (_, n) => ({ targetUrl: `https://example.com/${n}` })),
  });
  const seen: number[] = [];
  for await (const answer of batches.watchBatch({ id: batch?.id ?? '' }))
    seen.push(answer.batch?.counts?.created ?? -1);
  expect(seen.at(-1)).toBe(1_000);
  expect(seen).toEqual(seen.toSorted((one, other) => one - other));
});

test('the images of a batch come in print order, each with its scan URL, and with a manifest', async () => {
  const id = await completedBatch(12, (n) => (n === 3 ? '=cmd|x!A1' : `Tisch "${n}", Fenster`));
  const { rows } = await batches.getBatch({ id });
  const files = await exportFiles({ id });
  const names = [...files.keys()];
  expect(names).toEqual([
    ...rows.slice(0, 12).map(({ shortCode }, n) => `${String(n + 1).padStart(5, '0')}-${shortCode}.png`),
    'manifest.csv',
  ]);
  const manifest = files.get('manifest.csv')?.toString().split('\r\n') ?? [];
  expect(manifest[0]).toBe('index,file,id,short_code,scan_url,target_url,name,external_ref');
  expect(manifest).toHaveLength(12 + 2);
  expect(manifest[1]).toBe(
    `0,${names[0]},${rows[0]?.codeId},${rows[0]?.shortCode},${rows[0]?.scanUrl},https://example.com/0,"Tisch ""0"", Fenster",T-0`,
  );
  // A spreadsheet must not run it as a formula.
  expect(manifest[4]).toContain(`'=cmd|x!A1`);
  const path = join(folder, 'one.png');
  await writeFile(path, files.get(names[5] ?? '') ?? '');
  expect(execFileSync('zbarimg', ['--raw', '-q', path]).toString().trim()).toBe(rows[5]?.scanUrl);
});

test('an export can be SVG, or have another size', async () => {
  const id = await completedBatch(2);
  const svg = [...(await exportFiles({ id, format: ImageFormat.SVG }))][0];
  expect(svg?.[0]).toMatch(/^00001-.*\.svg$/);
  expect(svg?.[1].toString()).toContain('<title>Table 0</title>');
  const png = [...(await exportFiles({ id, size: 256 }))][0];
  expect(png?.[1].readUInt32BE(16)).toBe(256);
});

test('an export of several pages is complete, except for a deleted code', async () => {
  const id = await completedBatch(1_100);
  const { rows } = await batches.getBatch({ id, limit: 1_000 });
  const deleted = rows[700];
  const answer = await fetch(`${signpost.url}/api/v1/qr-codes/${deleted?.codeId}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${apiKey}` },
  });
  expect(answer.status).toBe(200);
  const files = await exportFiles({ id });
  const names = [...files.keys()];
  expect(names).toHaveLength(1_099 + 1);
  expect(names).toEqual(names.toSorted());
  expect(names.join()).not.toContain(deleted?.shortCode);
  // More than one compressed block.
  const manifest = files.get('manifest.csv')?.toString() ?? '';
  expect(manifest.length).toBeGreaterThan(128 * 1024);
  expect(manifest.split('\r\n').map((line) => line.split(',')[1])).toEqual(['file', ...names.slice(0, -1), undefined]);
});

test('an account has four open exports at a time; readers who disconnect make room', async () => {
  const id = await completedBatch(500);
  // Drawing the largest images takes so long that none of the exports ends by itself.
  const begin = async (signal: AbortSignal) => {
    const stream = batches.exportBatch({ id, size: 4096 }, { signal })[Symbol.asyncIterator]();
    await stream.next();
  };
  const readers = Array.from({ length: 4 }, () => new AbortController());
  await Promise.all(readers.map(({ signal }) => begin(signal)));
  const other = new AbortController();
  expect(readFailure(await begin(other.signal).catch((error) => error))).toMatchObject({
    reason: 'UNAVAILABLE',
    message: 'Too many exports of this account are open. Close some, or try again.',
    details: { limit: '4' },
  });
  for (const reader of readers) reader.abort();
  const opened = () => begin(other.signal).then(() => 'open', String);
  for (let n = 0; n < 4; n++) await expect.poll(opened, { timeout: 10_000 }).toBe('open');
  other.abort();
});

test('the command line saves an export to a file, and exits with 3 if rows are pending', async () => {
  const { accountId, apiKey: key } = await signpost.createAccount();
  const answer = await fetch(`${signpost.url}/api/v1/batches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ rows: [{ target_url: 'https://example.com' }] }),
  });
  const { data } = (await answer.json()) as { data: { id: string } };
  for await (const _ of watchAs(key, data.id));
  const out = join(folder, 'saved.zip');
  const args = ['batch', 'export', '--account', accountId, '--id', data.id, '--format', 'svg', '--out', out, '--json'];
  const env = { ...process.env, CORE_PORT: String(signpost.corePort), SERVICE_TOKEN: signpost.serviceToken };
  const stdout = execFileSync(process.execPath, ['cli/main.ts', ...args], { env }).toString();
  expect(JSON.parse(stdout)).toEqual({ path: out, images: 1 });
  expect((await readFile(out)).subarray(0, 2).toString()).toBe('PK');
  const client = new pg.Client(signpost.databaseUrl);
  await client.connect();
  await client.query('update batches set total = total + 2 where id = $1', [decodeId('batch', data.id)]);
  await client.end();
  const incomplete = spawnSync(process.execPath, ['cli/main.ts', ...args], { env, encoding: 'utf8' });
  expect(incomplete).toMatchObject({ status: 3, stdout });
  expect(incomplete.stderr).toContain('2 rows of the batch are still pending; export it again later.');
});

function watchAs(key: string, id: string) {
  const transport = createConnectTransport({ baseUrl: `http://127.0.0.1:${signpost.corePort}`, httpVersion: '1.1' });
  return createClient(BatchesService, transport).watchBatch({ id }, { headers: { authorization: `Bearer ${key}` } });
}
