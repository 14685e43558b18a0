import { type Code, CodeType } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';

/** What a code is called where it must be called something. */
export function nameOfCode({ name, shortCode, payload, id }: Code): string {
  return name || shortCode || payload || id;
}

/** What its image encodes. */
export function encodedBy({ type, payload, scanUrl }: Code): string {
  return type === CodeType.STATIC ? (payload ?? '') : scanUrl;
}

/** An address without what all have: `example.com/menu` of `https://www.example.com/menu`. */
export function shortAddress(url: string): string {
  return url.replace(/^https?:\/\/(www\.)?/, '').replace(/\/$/, '');
}
