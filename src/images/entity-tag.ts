import { createHash } from 'node:crypto';

/**
 * Version of the renderer: increment it whenever the same input would give different bytes, for example after an
 * upgrade of `qrcode`.
 */
const RENDERER = 4;

/**
 * A strong entity tag computed from everything that the image depends on, so that no rendering is needed to compare.
 */
export function entityTag(inputs: readonly (string | number)[]): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([RENDERER, ...inputs]))
    .digest('base64url');
  return `"${digest.slice(0, 22)}"`;
}

/** Whether one of the caller's tags equals the current one by weak comparison (RFC 9110 §8.8.3.2); `*` always does. */
export function matches(tags: readonly string[], current: string): boolean {
  return tags
    .flatMap((tag) => tag.match(/\*|(?:W\/)?"[^"]*"/g) ?? [])
    .some((tag) => tag === '*' || tag.replace(/^W\//, '') === current);
}
