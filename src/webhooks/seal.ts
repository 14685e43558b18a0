import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Secrets as the database keeps them: AES-256-GCM under a key that is derived from `SECRET_KEY`. What is sealed names
 * its key, and opens only for the owner that it was sealed for, so that nobody can move it to another row.
 */
export interface Seal {
  /** `owner`: the UUID of the row that keeps it. */
  seal(owner: string, secret: string): Buffer;
  open(owner: string, sealed: Buffer): string;
  /** The id of the key that seals: the first bytes of what it sealed. */
  readonly keyId: Buffer;
}

/** `former`: the key before, which still opens what it sealed. */
export function sealWith(secretKey: Buffer, former?: Buffer): Seal {
  const current = keyFrom(secretKey);
  const keys = [current, ...(former ? [keyFrom(former)] : [])];
  return {
    keyId: current.id,
    seal(owner, secret) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, current.bytes, nonce).setAAD(Buffer.from(owner));
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return Buffer.concat([current.id, nonce, text, cipher.getAuthTag()]);
    },
    open(owner, sealed) {
      const key = keys.find(({ id }) => id.equals(sealed.subarray(0, ID_BYTES)));
      if (!key) throw new Error('A webhook secret was sealed under a SECRET_KEY that this process does not have.');
      const nonce = sealed.subarray(ID_BYTES, ID_BYTES + NONCE_BYTES);
      const decipher = createDecipheriv(ALGORITHM, key.bytes, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(owner)).setAuthTag(sealed.subarray(-TAG_BYTES));
      const text = sealed.subarray(ID_BYTES + NONCE_BYTES, -TAG_BYTES);
      return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
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
