import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JWTPayload } from 'jose';
import { sealFor } from './seal.ts';

/**
 * A cookie with sealed content, which any instance with the same `SECRET_KEY` reads. With the prefix `__Host-` browsers
 * accept it only over HTTPS or on localhost, from this very host, and send it to no other one.
 */
export interface SealedCookie {
  /** The content that a request carries; undefined if there is none that is valid. */
  read(request: FastifyRequest): Promise<JWTPayload | undefined>;
  /** Sets the cookie. `expiresAt`: s since 1970. */
  write(reply: FastifyReply, content: JWTPayload, expiresAt: number): Promise<void>;
  clear(reply: FastifyReply): void;
}

/** Lax rather than Strict: the OpenID provider, and links in e-mails, send people here from other sites. */
const ATTRIBUTES = { path: '/', httpOnly: true, secure: true, sameSite: 'lax' } as const;

/** `name`: without the prefix. */
export function sealedCookie(name: string, secretKey: Buffer): SealedCookie {
  const cookie = `__Host-${name}`;
  const seal = sealFor(name, secretKey);
  return {
    async read(request) {
      const sealed = request.cookies[cookie];
      return sealed === undefined ? undefined : seal.open(sealed);
    },
    async write(reply, content, expiresAt) {
      const sealed = await seal.close(content, expiresAt);
      reply.setCookie(cookie, sealed, { ...ATTRIBUTES, expires: new Date(expiresAt * 1_000) });
    },
    clear(reply) {
      reply.clearCookie(cookie, ATTRIBUTES);
    },
  };
}
