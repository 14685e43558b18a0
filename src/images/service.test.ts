import type { Worker } from 'node:worker_threads';
import type { Pool } from 'pg';
import { beforeAll, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { ImageFormat, ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { afterFile } from '../../test/harness/after-file.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { insertAccount } from '../../test/harness/insert-account.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { serviceClient } from '../rpc/service-client.fixture.ts';
import { matrixOf } from './matrix.ts';
import { renderPng } from './png.ts';
import { imagesService } from './service.ts';
import { renderSvg } from './svg.ts';

const PLATFORM_URL = 'https://go.example';
let pool: Pool;
beforeAll(async () => {
  const database = await openDatabase((await freshDatabase()).url, 2, entities);
  afterFile(() => database.close());
  pool = database.pool;
});

const COLUMNS = {
  name: 'Menu & more',
  type: 'dynamic',
  payload: null as string | null,
  hostname: null as string | null,
  foreground_color: '#123456',
  background_color: '#fed',
};

/** A new account with one code, and a client that calls the service as that account. */
async function newCode(columns: Partial<{ [Name in keyof typeof COLUMNS]: (typeof COLUMNS)[Name] | null }> = {}) {
  const [accountId, codeId] = [newUuid(), newUuid()];
  const shortCode = codeId.slice(-7);
  const code = { ...COLUMNS, ...columns };
  await insertAccount(pool, { id: accountId });
  await pool.query(
    `insert into codes (id, account_id, short_code, ${Object.keys(code)}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [codeId, accountId, shortCode, ...Object.values(code)],
  );
  const client = serviceClient(ImagesService, imagesService(pool, PLATFORM_URL), { id: accountId });
  const id = encodeId('qr', codeId);
  return {
    id,
    shortCode,
    url: `${PLATFORM_URL}/r/${shortCode}`,
    render: (request: { format?: ImageFormat; size?: number; ifNoneMatch?: string[]; id?: string } = {}) =>
      client.renderImage({ id, ...request }),
    change: (name: keyof typeof COLUMNS, value: string | null) =>
      pool.query(`update codes set ${name} = $1 where id = $2`, [value, codeId]),
  };
}

const threads: Worker[] = [];
process.on('worker', (thread) => threads.push(thread));

/** How many threads a call starts when none is running. */
async function threadsFor(call: () => Promise<unknown>): Promise<number> {
  await threads.at(-1)?.terminate();
  const before = threads.length;
  await call();
  return threads.length - before;
}

function reasonFor(call: Promise<unknown>): Promise<string | undefined> {
  return call.then(
    () => 'no failure',
    (error) => readFailure(error).reason,
  );
}

test('the image encodes the scan URL in the colours of the code, by default as a PNG of 512 pixels', async () => {
  const code = await newCode();
  const image = await code.render();
  const fileName = `menu-more-${code.shortCode}.png`;
  expect(image).toMatchObject({ contentType: 'image/png', fileName, unchanged: false });
  expect(Buffer.from(image.content)).toEqual(renderPng(matrixOf(code.url), 512, '#123456', '#fed'));
});

test('the image of a static code encodes its payload', async () => {
  const payload = 'WIFI:T:WPA;S:Lobby;P:secret;;';
  const image = await (await newCode({ type: 'static', payload })).render({ format: ImageFormat.PNG });
  expect(Buffer.from(image.content)).toEqual(renderPng(matrixOf(payload), 512, '#123456', '#fed'));
});

test('an SVG has the name of the code, or else its short code, as its title, and no size', async () => {
  const named = await newCode();
  const image = await named.render({ format: ImageFormat.SVG, size: 1_000 });
  expect(image).toMatchObject({ contentType: 'image/svg+xml', fileName: `menu-more-${named.shortCode}.svg` });
  expect(Buffer.from(image.content).toString()).toBe(
    renderSvg(matrixOf(named.url), { foreground: '#123456', background: '#fed', title: 'Menu & more' }),
  );
  expect((await named.render({ format: ImageFormat.SVG })).etag).toBe(image.etag);

  const unnamed = await newCode({ name: null });
  const { content } = await unnamed.render({ format: ImageFormat.SVG });
  expect(Buffer.from(content).toString()).toContain(`<title>${unnamed.shortCode}</title>`);
});

test.each([
  [-1, 128],
  [0, 128],
  [127, 128],
  [128, 128],
  [4_096, 4_096],
  [4_097, 4_096],
  [2_147_483_647, 4_096],
])('a size of %i is clamped to %i', async (requested, used) => {
  const { content } = await (await newCode()).render({ size: requested });
  const header = Buffer.from(content);
  expect([header.readUInt32BE(16), header.readUInt32BE(20)]).toEqual([used, used]);
});

test.each([
  [128, 453],
  [452, 453],
  [453, 453],
  [undefined, 512],
])('the largest code, asked for in %s px, is drawn in %i: 2.5 px per module', async (size, used) => {
  const code = await newCode({ type: 'static', payload: 'x'.repeat(2_331) });
  const { content } = await code.render(size === undefined ? {} : { size });
  const header = Buffer.from(content);
  expect([header.readUInt32BE(16), header.readUInt32BE(20)]).toEqual([used, used]);
});

test('small images are drawn without a thread, large ones and those of long texts in one', async () => {
  const url = await newCode();
  const long = await newCode({ type: 'static', payload: 'x'.repeat(129) });
  expect(await threadsFor(() => url.render())).toBe(0);
  expect(await threadsFor(() => url.render({ size: 1_024 }))).toBe(0);
  expect(await threadsFor(() => url.render({ format: ImageFormat.SVG, size: 4_096 }))).toBe(0);
  expect(await threadsFor(() => url.render({ size: 1_025 }))).toBe(1);
  expect(await threadsFor(() => long.render())).toBe(1);
});

test('an image that the caller has is not sent again, and renaming the code leaves its PNG unchanged', async () => {
  const code = await newCode();
  const { etag } = await code.render();
  await code.change('name', 'Renamed');
  const again = await code.render({ ifNoneMatch: ['"x"', `W/${etag}`] });
  expect(again).toMatchObject({ unchanged: true, etag, content: new Uint8Array() });
});

test('any change of the image sends it again with another tag', async () => {
  const code = await newCode();
  const { etag } = await code.render();
  const images = [
    await code.render({ ifNoneMatch: [etag], size: 513 }),
    await code.render({ ifNoneMatch: [etag], format: ImageFormat.SVG }),
  ];
  for (const [name, value] of [
    ['foreground_color', '#000'],
    ['background_color', '#fff'],
    ['type', 'static'],
  ] as const) {
    await code.change('payload', 'text');
    await code.change(name, value);
    images.push(await code.render({ ifNoneMatch: [etag] }));
  }
  expect(images.filter(({ unchanged, content }) => unchanged || content.length === 0)).toEqual([]);
  expect(new Set([etag, ...images.map((image) => image.etag)]).size).toBe(6);
});

test('404: the account has no such code', async () => {
  const [code, other] = [await newCode(), await newCode()];
  for (const id of ['qr_2', encodeId('qr', newUuid()), other.id]) {
    expect(await reasonFor(code.render({ id }))).toBe('NOT_FOUND');
  }
});

test('409: the code has nothing to encode', async () => {
  expect(await reasonFor((await newCode({ type: 'static' })).render())).toBe('NOTHING_TO_ENCODE');
});

test('503: the custom domain does not resolve, even for a caller who has the image', async () => {
  const code = await newCode();
  const { etag } = await code.render();
  await code.change('hostname', 'gone.example');
  expect(await reasonFor(code.render({ ifNoneMatch: [etag] }))).toBe('DOMAIN_NOT_RESOLVED');
});
