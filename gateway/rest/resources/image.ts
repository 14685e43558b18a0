import { bearerToken } from '../../../common/contract/api-key.ts';
import { IMAGE_PIXELS } from '../../../common/contract/ranges.ts';
import { isSmallImage } from '../../../common/contract/small-image.ts';
import { successStatus } from '../../../common/contract/success-status.ts';
import { fairQueue } from '../../../common/queues/fair-queue.ts';
import { ImageFormat, ImagesService } from '../../../proto/gen/signpost/images/v1/images_pb.ts';
import type { CoreClients } from '../../core/clients.ts';
import { type Endpoint, endpoint } from '../endpoint.ts';
import { entityTags } from '../entity-tags.ts';
import { integer, oneOf } from '../query.ts';
import { rangeParameter } from './page.ts';

/**
 * The number of concurrent calls of a process: the core handles only some images at a time, and hundreds of calls
 * waiting there would delay other calls of this process. Large images: with two processors the core draws one at a
 * time.
 */
const CONCURRENCY = { small: 8, large: 2 };
const MAX_WAITING = 1_000;

const FORMATS = { png: ImageFormat.PNG, svg: ImageFormat.SVG };

/** An example with the first of some hundred modules. */
const SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 29 29" shape-rendering="crispEdges">' +
  '<path fill="#ffffff" d="M0 0h29v29H0z"/><path stroke="#000000" d="M2 2.5h7"/></svg>';

/** The image of a code. Source: GET /api/v1/qr-codes/{id}/image. */
export function image(core: CoreClients): Endpoint[] {
  const small = fairQueue({ concurrency: CONCURRENCY.small, maxWaiting: MAX_WAITING, items: 'images' });
  const large = fairQueue({ concurrency: CONCURRENCY.large, maxWaiting: MAX_WAITING, items: 'images' });
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
        'modules. It encodes the scan URL on the code’s own domain, or the payload of a static code, marked as UTF-8 ' +
        'if it is not ASCII. A PNG is larger than `size` if the code would have less than 2.5 pixels per module, which ' +
        'decoders cannot read; 453 pixels suffice for every code.',
      query: {
        format: {
          description: 'Anything else is a 400.',
          schema: { type: 'string', enum: ['png', 'svg'], default: 'png' },
          example: 'svg',
        },
        size: rangeParameter('Width and height of a PNG in pixels, ignored for SVG:', IMAGE_PIXELS, 1_024),
      },
      success: { 200: 'The image.', 304: 'The image in `If-None-Match` is still current.' },
      headers: {
        ETag: 'Changes with the image.',
        'Content-Disposition': 'A file name for the image.',
      },
      response: { media: { 'image/png': {}, 'image/svg+xml': { schema: { type: 'string' }, example: SVG } } },
      errors: {
        400: ['unknown_format'],
        403: ['business_plan_required', 'no_images'],
        404: ['no_such_code'],
        409: ['nothing_to_encode'],
        503: ['domain_not_resolved'],
      },
      async handle({ id, query, headers, options }) {
        const format = FORMATS[oneOf(query, 'format', ['png', 'svg']) ?? 'png'];
        const ifNoneMatch = entityTags(headers['if-none-match']);
        const imageRequest = { id, format, ...integer(query, 'size'), ifNoneMatch };
        const inTurn = isSmallImage(imageRequest) ? small : large;
        // Not the whole header: with other spaces and cases of `Bearer` one key would count as any number of callers.
        const key = bearerToken(headers.authorization) ?? '';
        const rendered = await inTurn(key, options.signal, () => core.images.renderImage(imageRequest, options));
        const sharedHeaders = {
          etag: rendered.etag,
          'cache-control': 'private, no-cache',
          // The core's file names are of letters, digits and hyphens.
          'content-disposition': `inline; filename="${rendered.fileName}"`,
        };
        const status = successStatus(200, rendered);
        if (status === 304) return { status, headers: sharedHeaders, body: undefined };
        return { status, headers: { ...sharedHeaders, 'content-type': rendered.contentType }, body: rendered.content };
      },
    }),
  ];
}
