import { type Code, CodeType } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';

/** What a code is called where it must be called something. */
export function nameOfCode({ name, shortCode, payload, id }: Code): string {
  return name || shortCode || payload || id;
}

/**
 * A name for the middle of a sentence: one that runs from right to left, or has marks that turn text around, does not
 * reorder the words beside it.
 */
export function isolated(name: string): string {
  return /[\p{Bidi_Control}\p{Script=Arabic}\p{Script=Hebrew}]/u.test(name) ? `\u2068${name}\u2069` : name;
}

/** What its image encodes. */
export function encodedBy({ type, payload, scanUrl }: Code): string {
  return type === CodeType.STATIC ? (payload ?? '') : scanUrl;
}

/** An address without what all have: `example.com/menu` of `https://www.example.com/menu`. */
export function shortAddress(url: string): string {
  return url.replace(/^https?:\/\/(www\.)?/, '').replace(/\/$/, '');
}
