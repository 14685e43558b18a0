import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JWTPayload } from 'jose';
import { cookieCipherFor } from './cookie-cipher.ts';

/**
 * A cookie with encrypted content, which any instance with the same `SECRET_KEY` reads. With the prefix `__Host-`
 * browsers accept it only as `Secure` and from this very host, and send it to no other one. Over http, which
 * `DASHBOARD_URL` allows on localhost only, it has neither: there many versions of Safari accept no `Secure` cookies
 * (WebKit bug 281149), so that nobody could sign in.
 */
export interface EncryptedCookie {
  /** The content that a request carries; undefined if there is none that is valid. */
  read(request: FastifyRequest): Promise<JWTPayload | undefined>;
  /** Sets the cookie. `expiresAt`: s since 1970. */
  write(reply: FastifyReply, content: JWTPayload, expiresAt: number): Promise<void>;
  clear(reply: FastifyReply): void;
}

interface CookieOptions {
  readonly secretKey: Buffer;
  readonly dashboardUrl: string;
}

/** `name`: without the prefix. */
export function encryptedCookie(name: string, options: CookieOptions): EncryptedCookie {
  return encryptedCookies(name, options).named('');
}

/** Cookies with encrypted content for one purpose, whose names begin with it. */
export function encryptedCookies(purpose: string, { secretKey, dashboardUrl }: CookieOptions) {
  const secure = dashboardUrl.startsWith('https:');
  // Servers on other ports of localhost get and set the same cookies.
  const prefix = `${secure ? '__Host-' : 'signpost-'}${purpose}`;
  // Lax rather than Strict: the OpenID provider, and links in e-mails, send people here from other sites.
  const attributes = { path: '/', httpOnly: true, secure, sameSite: 'lax' } as const;
  const cipher = cookieCipherFor(purpose, secretKey);
  return {
    /** The cookie with this suffix. */
    named(suffix: string): EncryptedCookie {
      const cookie = prefix + suffix;
      return {
        async read(request) {
          const encrypted = request.cookies[cookie];
          return encrypted === undefined ? undefined : cipher.decrypt(encrypted);
        },
        async write(reply, content, expiresAt) {
          const encrypted = await cipher.encrypt(content, expiresAt);
          reply.setCookie(cookie, encrypted, { ...attributes, expires: new Date(expiresAt * 1_000) });
        },
        clear(reply) {
          reply.clearCookie(cookie, attributes);
        },
      };
    },
    /** The suffixes of the cookies that a request carries, the oldest first (RFC 6265, 5.4). */
    suffixes(request: FastifyRequest): readonly string[] {
      const names = Object.keys(request.cookies).filter((name) => name.startsWith(prefix));
      return names.map((name) => name.slice(prefix.length));
    },
  };
}
