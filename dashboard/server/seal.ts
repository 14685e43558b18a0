import { hkdfSync } from 'node:crypto';
import { EncryptJWT, type JWTPayload, jwtDecrypt } from 'jose';

/** Encrypts and authenticates content that browsers keep for the server (JWE, AES-256-GCM). */
export interface Seal {
  /** `expiresAt`: s since 1970. */
  close(content: JWTPayload, expiresAt: number): Promise<string>;
  /** Undefined if it is forged, expired, or was sealed for another purpose or with another key. */
  open(sealed: string): Promise<JWTPayload | undefined>;
}

/** `purpose`: authenticated, so that no content can be taken for another purpose's. */
export function sealFor(purpose: string, secretKey: Buffer): Seal {
  const key = new Uint8Array(hkdfSync('sha256', secretKey, '', 'signpost dashboard cookies', 32));
  return {
    close: (content, expiresAt) =>
      new EncryptJWT(content)
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
        .setAudience(purpose)
        .setExpirationTime(expiresAt)
        .encrypt(key),
    async open(sealed) {
      try {
        const { payload } = await jwtDecrypt(sealed, key, {
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
