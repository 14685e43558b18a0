import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Authenticated encryption of the secrets in the database: AES-256-GCM with a key derived from `SECRET_KEY`. A sealed
 * secret starts with the id of its key, and authenticates the id of its row, so that a copy in another row does not
 * open.
 */
export interface Seal {
  /** Encrypts a secret. `owner`: the UUID of its row. */
  seal(owner: string, secret: string): Buffer;
  /** Decrypts a secret. Throws if it was altered, belongs to another row or was sealed with an unknown key. */
  open(owner: string, sealed: Buffer): string;
  /** The id of the key that `seal` uses: the first bytes of its results. */
  readonly keyId: Buffer;
  /** The ids of the keys that `open` knows. */
  readonly keyIds: readonly Buffer[];
}

/** `secretKey` seals and opens; `former`, the previous key, only opens. */
export function sealWith(secretKey: Buffer, former?: Buffer): Seal {
  const current = keyFrom(secretKey);
  const keys = [current, ...(former ? [keyFrom(former)] : [])];
  return {
    keyId: current.id,
    keyIds: keys.map(({ id }) => id),
    seal(owner, secret) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, current.bytes, nonce).setAAD(Buffer.from(owner));
      const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return Buffer.concat([current.id, nonce, ciphertext, cipher.getAuthTag()]);
    },
    open(owner, sealed) {
      const key = keys.find(({ id }) => id.equals(sealed.subarray(0, ID_BYTES)));
      if (!key) throw new Error('A webhook secret was encrypted with a SECRET_KEY that this process does not have.');
      const nonce = sealed.subarray(ID_BYTES, ID_BYTES + NONCE_BYTES);
      const decipher = createDecipheriv(ALGORITHM, key.bytes, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(owner)).setAuthTag(sealed.subarray(-TAG_BYTES));
      const ciphertext = sealed.subarray(ID_BYTES + NONCE_BYTES, -TAG_BYTES);
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
