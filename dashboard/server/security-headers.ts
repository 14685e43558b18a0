/**
 * What pages may do: load from the dashboard itself and nothing else. Images may also be made by the page (`blob:`,
 * `data:`), as previews of codes and landing pages are.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The headers of every answer. `secure`: whether the dashboard is opened over HTTPS. */
export function securityHeaders(secure: boolean): Readonly<Record<string, string>> {
  return {
    'content-security-policy': POLICY,
    'x-content-type-options': 'nosniff',
    // Not `no-referrer`, with which browsers send `Origin: null` with the forms of these pages.
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
    ...(secure && { 'strict-transport-security': 'max-age=31536000' }),
  };
}
