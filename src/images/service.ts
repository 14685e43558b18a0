import type { ServiceImpl } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { ImageFormat, type ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { accountOf } from '../access/caller.ts';
import { findInGroups } from '../codes/find-code.ts';
import { type ImageContent, imageSource } from '../codes/image-source.ts';
import { draw } from './draw.ts';
import { type Drawing, drawSync, isQuick, sizeOf } from './drawing.ts';
import { entityTag, matches } from './entity-tag.ts';
import { fileName } from './file-name.ts';

/** Images of codes, drawn on demand. `platformUrl`: start of scan URLs on the platform's host. */
export function imagesService(pool: Pool, platformUrl: string): ServiceImpl<typeof ImagesService> {
  const findCode = findInGroups(pool);
  return {
    async renderImage(request, context) {
      const source = await imageSource(pool, platformUrl, await findCode(accountOf(context).id, request.id));
      const text = textOf(source.content);
      const { foreground, background, shortCode } = source;
      const format = request.format === ImageFormat.SVG ? 'svg' : 'png';
      const size = sizeOf(request.size);
      const title = source.name ?? shortCode;

      const inputs =
        format === 'svg' ? [format, text, foreground, background, title] : [format, text, foreground, background, size];
      const metadata = {
        contentType: format === 'svg' ? 'image/svg+xml' : 'image/png',
        etag: entityTag(inputs),
        fileName: fileName(source.name, shortCode, format),
      };
      if (matches(request.ifNoneMatch, metadata.etag)) return { ...metadata, unchanged: true };
      const drawing: Drawing = { text, format, size, foreground, background, title };
      const content = isQuick(drawing) ? drawSync(drawing) : await draw(drawing);
      return { ...metadata, content };
    },
  };
}

function textOf(content: ImageContent): string {
  switch (content.kind) {
    case 'scan_url':
      return content.url;
    case 'payload':
      return content.text;
    case 'nothing':
      throw failure('NOTHING_TO_ENCODE', 'This code has nothing to encode.');
    case 'unresolved_domain':
      throw failure('DOMAIN_NOT_RESOLVED', "The code's custom domain does not resolve at the moment; try again.");
  }
}
