import { fairQueue } from '../../common/runtime/fair-queue.ts';
import { ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import type { CoreClients } from '../core.ts';
import { type Endpoint, endpoint } from './endpoint.ts';
import { integer, oneOf } from './query.ts';

/** An entity tag, weak or strong, or `*`. Source: RFC 9110 §13.1.2. */
const ENTITY_TAG = /(?:W\/)?("[^"]*")|\*/g;

/**
 * A process passes few on at a time: the core draws about one, and hundreds of calls that only wait there would delay
 * the others that this process makes.
 */
const AT_ONCE = 2;
const MOST_WAITING = 1_000;

/** The first of some hundred modules. */
const SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 29 29" shape-rendering="crispEdges">' +
  '<path fill="#ffffff" d="M0 0h29v29H0z"/><path stroke="#000000" d="M2 2.5h7"/></svg>';

/** The image of a code. Source: GET /api/v1/qr-codes/{id}/image. */
export function image(core: CoreClients): Endpoint[] {
  const inTurn = fairQueue({ concurrency: AT_ONCE, maxWaiting: MOST_WAITING, items: 'images' });
  return [
    endpoint({
      id: 'getCodeImage',
      method: 'GET',
      path: '/api/v1/qr-codes/{id}/image',
      rpc: ImagesService.method.renderImage,
      tag: 'QR codes',
      summary: 'Download the image',
      description:
        'The code as PNG or SVG: square modules in its own colours, error correction level M, a quiet zone of two ' +
        'modules. It encodes the scan URL on the code’s own domain, or the payload of a static code.',
      query: {
        format: {
          description: 'Anything else is a 400.',
          schema: { type: 'string', enum: ['png', 'svg'], default: 'png' },
        },
        size: {
          description:
            'Width and height of a PNG in pixels; ignored for SVG. Values out of range are clamped; what is no ' +
            'integer counts as the default.',
          schema: { type: 'integer', minimum: 128, maximum: 4_096, default: 512 },
        },
      },
      success: { 200: 'The image.', 304: 'The image that `If-None-Match` names is still the current one.' },
      headers: {
        ETag: 'Changes when the image does.',
        'Content-Disposition': 'A name to save the image under.',
      },
      answer: { media: { 'image/png': {}, 'image/svg+xml': { schema: { type: 'string' }, example: SVG } } },
      errors: {
        400: '`format` is neither `png` nor `svg`.',
        403: 'API access or images are not on the plan.',
        404: 'No such code on this account.',
        409: 'The code has nothing to encode.',
        503: 'The custom domain of the code could not be resolved; retry.',
      },
      async handle({ id, query, headers, options }) {
        const format = oneOf(query, 'format', ['png', 'svg']) ?? 'png';
        const known = [...(headers['if-none-match'] ?? '').matchAll(ENTITY_TAG)].map(([any, tag]) => tag ?? any);
        const wanted = { id, format, ...integer(query, 'size'), ifNoneMatch: known };
        const rendered = await inTurn(headers.authorization ?? '', options.signal, () =>
          core.images.renderImage(wanted, options),
        );
        const always = {
          etag: rendered.etag,
          'cache-control': 'private, no-cache',
          'content-disposition': inline(rendered.fileName),
        };
        if (rendered.unchanged || known.includes('*')) return { status: 304, headers: always, body: undefined };
        return {
          status: 200,
          headers: { ...always, 'content-type': rendered.contentType },
          body: rendered.content,
        };
      },
    }),
  ];
}

/** Shows the image where it can be shown, and names the file in ASCII and in full (RFC 6266 §4, RFC 8187 §3.2). */
function inline(fileName: string): string {
  const ascii = fileName.replace(/[^\x20-\x7e]|["\\%]/g, '_');
  const full = encodeURIComponent(fileName.toWellFormed()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `inline; filename="${ascii}"; filename*=UTF-8''${full}`;
}
