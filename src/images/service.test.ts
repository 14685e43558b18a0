import { createClient, createRouterTransport } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { newUuid } from '../../common/contract/ids.ts';
import { ImageFormat, ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { callerKey } from '../access/caller.ts';
import { matrixOf } from './matrix.ts';
import { renderPng } from './png.ts';
import { imagesService } from './service.ts';
import type { ImageContent, ImageSource } from './source.ts';
import { renderSvg } from './svg.ts';

const URL = 'https://go.example/AbC1234';
const LOOKS = { shortCode: 'AbC1234', name: 'Menu & more', foreground: '#123456', background: '#fed' };

/** Speaks to the service over a real Connect transport in memory, as an account whose only code is `qr_1`. */
function clientOf(content: ImageContent = { kind: 'scan_url', url: URL }, looks: Partial<ImageSource> = {}) {
  const account = {
    id: newUuid(),
    features: { api: true, bulk: true, images: true },
    codeLimit: null,
    batchLimit: 0,
  };
  const codes = {
    imageSource: async (accountId: string, id: string) =>
      accountId === account.id && id === 'qr_1' ? { ...LOOKS, ...looks, content } : undefined,
  };
  const transport = createRouterTransport(({ service }) => service(ImagesService, imagesService(codes)), {
    router: {
      interceptors: [
        (next) => (request) => {
          request.contextValues.set(callerKey, { kind: 'service', account, actor: 'test' });
          return next(request);
        },
      ],
    },
  });
  return createClient(ImagesService, transport);
}

function reasonFor(call: Promise<unknown>): Promise<string | undefined> {
  return call.then(
    () => 'no failure',
    (error) => readFailure(error).reason,
  );
}

test('the image encodes the scan URL in the colours of the code, as a PNG of 512 pixels unless told', async () => {
  const image = await clientOf().renderImage({ id: 'qr_1' });
  expect(image).toMatchObject({ contentType: 'image/png', fileName: 'menu-more-AbC1234.png', unchanged: false });
  expect(Buffer.from(image.content)).toEqual(renderPng(matrixOf(URL), 512, '#123456', '#fed'));
});

test('the image of a static code encodes its payload', async () => {
  const payload = 'WIFI:T:WPA;S:Lobby;P:secret;;';
  const image = await clientOf({ kind: 'payload', text: payload }).renderImage({ id: 'qr_1', format: ImageFormat.PNG });
  expect(Buffer.from(image.content)).toEqual(renderPng(matrixOf(payload), 512, '#123456', '#fed'));
});

test('an SVG has the name of the code as its title, its short code when it has none, and no size', async () => {
  const named = await clientOf().renderImage({ id: 'qr_1', format: ImageFormat.SVG, size: 1_000 });
  expect(named).toMatchObject({ contentType: 'image/svg+xml', fileName: 'menu-more-AbC1234.svg' });
  expect(Buffer.from(named.content).toString()).toBe(renderSvg(matrixOf(URL), { ...LOOKS, title: LOOKS.name }));
  expect((await clientOf().renderImage({ id: 'qr_1', format: ImageFormat.SVG })).etag).toBe(named.etag);

  const unnamed = await clientOf(undefined, { name: null }).renderImage({ id: 'qr_1', format: ImageFormat.SVG });
  expect(Buffer.from(unnamed.content).toString()).toContain('<title>AbC1234</title>');
});

test.each([
  [-1, 128],
  [0, 128],
  [127, 128],
  [128, 128],
  [4_096, 4_096],
  [4_097, 4_096],
  [2_147_483_647, 4_096],
])('a size of %i is clamped to %i', async (asked, used) => {
  const { content } = await clientOf().renderImage({ id: 'qr_1', size: asked });
  const header = Buffer.from(content);
  expect([header.readUInt32BE(16), header.readUInt32BE(20)]).toEqual([used, used]);
});

test("an image that the caller has is not sent again, and the code's name, which a PNG has not, makes it no other", async () => {
  const { etag } = await clientOf().renderImage({ id: 'qr_1' });
  const again = await clientOf(undefined, { name: 'Renamed' }).renderImage({
    id: 'qr_1',
    ifNoneMatch: ['"x"', `W/${etag}`],
  });
  expect(again).toMatchObject({ unchanged: true, etag, content: new Uint8Array() });
});

test('whatever changes the image is sent, and has another tag', async () => {
  const { etag } = await clientOf().renderImage({ id: 'qr_1' });
  const changed = [
    clientOf({ kind: 'scan_url', url: `${URL}5` }).renderImage({ id: 'qr_1', ifNoneMatch: [etag] }),
    clientOf(undefined, { foreground: '#000' }).renderImage({ id: 'qr_1', ifNoneMatch: [etag] }),
    clientOf(undefined, { background: '#fff' }).renderImage({ id: 'qr_1', ifNoneMatch: [etag] }),
    clientOf().renderImage({ id: 'qr_1', ifNoneMatch: [etag], size: 513 }),
    clientOf().renderImage({ id: 'qr_1', ifNoneMatch: [etag], format: ImageFormat.SVG }),
  ];
  const images = await Promise.all(changed);
  expect(images.filter(({ unchanged, content }) => unchanged || content.length === 0)).toEqual([]);
  expect(new Set([etag, ...images.map((image) => image.etag)]).size).toBe(6);
});

test('404: the account has no such code', async () => {
  expect(await reasonFor(clientOf().renderImage({ id: 'qr_2' }))).toBe('NOT_FOUND');
});

test('409: the code has nothing to encode', async () => {
  expect(await reasonFor(clientOf({ kind: 'nothing' }).renderImage({ id: 'qr_1' }))).toBe('NOTHING_TO_ENCODE');
});

test('503: the custom domain does not resolve, also for a caller who has the image', async () => {
  const { etag } = await clientOf().renderImage({ id: 'qr_1' });
  const call = clientOf({ kind: 'unresolved_domain' }).renderImage({ id: 'qr_1', ifNoneMatch: [etag] });
  expect(await reasonFor(call)).toBe('DOMAIN_NOT_RESOLVED');
});
