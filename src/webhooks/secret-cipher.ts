import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Authenticated encryption of the secrets in the database: AES-256-GCM with a key derived from `SECRET_KEY`. An
 * encrypted secret starts with the id of its key, and authenticates the id of its row, so that a copy in another row
 * can't be decrypted.
 */
export interface SecretCipher {
  /** Encrypts a secret. `owner`: the UUID of its row. */
  encrypt(owner: string, secret: string): Buffer;
  /** Decrypts a secret. Throws if it was altered, belongs to another row or was encrypted with an unknown key. */
  decrypt(owner: string, encrypted: Buffer): string;
  /** The id of the key that `encrypt` uses: the first bytes of its results. */
  readonly keyId: Buffer;
  /** The ids of the keys that `decrypt` knows. */
  readonly keyIds: readonly Buffer[];
}

/** `secretKey` encrypts and decrypts; `former`, the previous key, only decrypts. */
export function secretCipherWith(secretKey: Buffer, former?: Buffer): SecretCipher {
  const current = keyFrom(secretKey);
  const keys = [current, ...(former ? [keyFrom(former)] : [])];
  return {
    keyId: current.id,
    keyIds: keys.map(({ id }) => id),
    encrypt(owner, secret) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, current.bytes, nonce).setAAD(Buffer.from(owner));
      const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return Buffer.concat([current.id, nonce, ciphertext, cipher.getAuthTag()]);
    },
    decrypt(owner, encrypted) {
      const key = keys.find(({ id }) => id.equals(encrypted.subarray(0, ID_BYTES)));
      if (!key) throw new Error('A webhook secret was encrypted with a SECRET_KEY that this process does not have.');
      const nonce = encrypted.subarray(ID_BYTES, ID_BYTES + NONCE_BYTES);
      const decipher = createDecipheriv(ALGORITHM, key.bytes, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(owner)).setAuthTag(encrypted.subarray(-TAG_BYTES));
      const ciphertext = encrypted.subarray(ID_BYTES + NONCE_BYTES, -TAG_BYTES);
      return Buffer.concat([decipher.update(ciphertext), decipher.final()]).toString('utf8');
    },
  };
}

interface Key {
  readonly id: Buffer;
  readonly bytes: Buffer;
}

function keyFrom(secretKey: Buffer): Key {
  const bytes = Buffer.from(hkdfSync('sha256', secretKey, '', 'signpost webhook secrets', 32));
  return { id: createHash('sha256').update(bytes).digest().subarray(0, ID_BYTES), bytes };
}
