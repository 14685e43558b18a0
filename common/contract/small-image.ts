import { ImageFormat, type RenderImageRequest } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { clamp, IMAGE_PIXELS } from './ranges.ts';

/**
 * The width of the largest PNGs that cost about as little as other calls: drawing one takes 0.2 to 0.7 ms, or up to 8
 * ms for the longest text.
 */
export const SMALL_PIXELS = 1_024;

/**
 * Whether the image is an SVG or a small PNG. Gateway and core handle several of those at a time, but few large ones.
 */
export function isSmallImage({ format, size }: Pick<RenderImageRequest, 'format' | 'size'>): boolean {
  return format === ImageFormat.SVG || clamp(size, IMAGE_PIXELS) <= SMALL_PIXELS;
}
