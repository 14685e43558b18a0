const USABLE = /^[\x21-\x7e]{1,128}$/;

/** The `X-Request-Id` that a caller sent, if it is 1–128 visible ASCII characters. */
export function usableRequestId(given: unknown): string | undefined {
  return typeof given === 'string' && USABLE.test(given) ? given : undefined;
}
