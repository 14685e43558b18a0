import { hkdfSync } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { EncryptJWT, type JWTPayload, jwtDecrypt } from 'jose';

/**
 * A cookie whose content is encrypted and authenticated (JWE, AES-256-GCM), so that any instance with the same
 * `SECRET_KEY` reads it. With the prefix `__Host-` browsers accept it only over HTTPS or on localhost, from this very
 * host, and send it to no other one.
 */
export interface SealedCookie {
  /** The content that a request carries; undefined if there is none, or it is forged, expired or another cookie's. */
  read(request: FastifyRequest): Promise<JWTPayload | undefined>;
  /** Sets the cookie. `expiresAt`: s since 1970. */
  write(reply: FastifyReply, content: JWTPayload, expiresAt: number): Promise<void>;
  clear(reply: FastifyReply): void;
}

/** Lax rather than Strict: the OpenID provider, and links in e-mails, send people here from other sites. */
const ATTRIBUTES = { path: '/', httpOnly: true, secure: true, sameSite: 'lax' } as const;

/** `name`: without the prefix. Neither cookie can be taken for the other, because their names are authenticated too. */
export function sealedCookie(name: string, secretKey: Buffer): SealedCookie {
  const cookie = `__Host-${name}`;
  const key = new Uint8Array(hkdfSync('sha256', secretKey, '', 'signpost dashboard cookies', 32));
  return {
    async read(request) {
      const sealed = request.cookies[cookie];
      if (sealed === undefined) return undefined;
      try {
        const { payload } = await jwtDecrypt(sealed, key, {
          audience: name,
          requiredClaims: ['exp'],
          keyManagementAlgorithms: ['dir'],
          contentEncryptionAlgorithms: ['A256GCM'],
        });
        return payload;
      } catch {
        return undefined;
      }
    },
    async write(reply, content, expiresAt) {
      const sealed = await new EncryptJWT(content)
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
        .setAudience(name)
        .setExpirationTime(expiresAt)
        .encrypt(key);
      reply.setCookie(cookie, sealed, { ...ATTRIBUTES, expires: new Date(expiresAt * 1_000) });
    },
    clear(reply) {
      reply.clearCookie(cookie, ATTRIBUTES);
    },
  };
}
