import { hkdfSync } from 'node:crypto';
import { EncryptJWT, type JWTPayload, jwtDecrypt } from 'jose';

/** Encrypts and authenticates content that browsers keep for the server (JWE, AES-256-GCM). */
export interface CookieCipher {
  /** `expiresAt`: s since 1970. */
  encrypt(content: JWTPayload, expiresAt: number): Promise<string>;
  /** Undefined if it is forged, expired, or was encrypted for another purpose or with another key. */
  decrypt(encrypted: string): Promise<JWTPayload | undefined>;
}

/** `purpose`: authenticated, so that no content can be taken for another purpose's. */
export function cookieCipherFor(purpose: string, secretKey: Buffer): CookieCipher {
  const key = new Uint8Array(hkdfSync('sha256', secretKey, '', 'signpost dashboard cookies', 32));
  return {
    encrypt: (content, expiresAt) =>
      new EncryptJWT(content)
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
        .setAudience(purpose)
        .setExpirationTime(expiresAt)
        .encrypt(key),
    async decrypt(encrypted) {
      try {
        const { payload } = await jwtDecrypt(encrypted, key, {
          audience: purpose,
          requiredClaims: ['exp'],
          keyManagementAlgorithms: ['dir'],
          contentEncryptionAlgorithms: ['A256GCM'],
        });
        return payload;
      } catch {
        return undefined;
      }
    },
  };
}
