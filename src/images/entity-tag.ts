import { createHash } from 'node:crypto';

/** Rises whenever the same input would give other bytes, for instance with another release of `qrcode`. */
const RENDERER = 2;

/** A strong entity tag of everything that is drawn, so that an unchanged image is never rendered to be compared. */
export function entityTag(drawn: readonly (string | number)[]): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([RENDERER, ...drawn]))
    .digest('base64url');
  return `"${digest.slice(0, 22)}"`;
}

/** Whether one of the caller's tags is this one, by weak comparison (RFC 9110 §8.8.3.2); `*` always is. */
export function matches(tags: readonly string[], current: string): boolean {
  return tags
    .flatMap((tag) => tag.match(/\*|(?:W\/)?"[^"]*"/g) ?? [])
    .some((tag) => tag === '*' || tag.replace(/^W\//, '') === current);
}
