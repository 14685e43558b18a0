import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { secretCipherWith } from './secret-cipher.ts';

const OWNER = '01990000-0000-7000-8000-000000000001';

test('an encrypted secret is decrypted for its own row alone, and does not contain the plaintext', () => {
  const { encrypt, decrypt } = secretCipherWith(randomBytes(32));
  const encrypted = encrypt(OWNER, 'whsec_x');
  expect(encrypted.includes('whsec')).toBe(false);
  expect(encrypt(OWNER, 'whsec_x').equals(encrypted)).toBe(false);
  expect(decrypt(OWNER, encrypted)).toBe('whsec_x');
  expect(() => decrypt('01990000-0000-7000-8000-000000000002', encrypted)).toThrow();
});

test('an altered secret can’t be decrypted', () => {
  const { encrypt, decrypt } = secretCipherWith(randomBytes(32));
  const encrypted = encrypt(OWNER, 'whsec_x');
  for (let at = 0; at < encrypted.length; at++) {
    const changed = Buffer.from(encrypted);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => decrypt(OWNER, changed)).toThrow();
  }
});

test('the former key decrypts but does not encrypt; a secret of an unknown key is reported as such', () => {
  const [former, current] = [randomBytes(32), randomBytes(32)];
  const encrypted = secretCipherWith(former).encrypt(OWNER, 'whsec_x');
  const { encrypt, decrypt } = secretCipherWith(current, former);
  expect(decrypt(OWNER, encrypted)).toBe('whsec_x');
  expect(secretCipherWith(current).decrypt(OWNER, encrypt(OWNER, 'whsec_y'))).toBe('whsec_y');
  expect(() => secretCipherWith(current).decrypt(OWNER, encrypted)).toThrow(
    'A webhook secret was encrypted with a SECRET_KEY that this process does not have.',
  );
});
