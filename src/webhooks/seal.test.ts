import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { sealWith } from './seal.ts';

const OWNER = '01990000-0000-7000-8000-000000000001';

test('a sealed secret opens for its own row alone, and does not contain the plaintext', () => {
  const { seal, open } = sealWith(randomBytes(32));
  const sealed = seal(OWNER, 'whsec_x');
  expect(sealed.includes('whsec')).toBe(false);
  expect(seal(OWNER, 'whsec_x').equals(sealed)).toBe(false);
  expect(open(OWNER, sealed)).toBe('whsec_x');
  expect(() => open('01990000-0000-7000-8000-000000000002', sealed)).toThrow();
});

test('an altered secret does not open', () => {
  const { seal, open } = sealWith(randomBytes(32));
  const sealed = seal(OWNER, 'whsec_x');
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => open(OWNER, changed)).toThrow();
  }
});

test('the former key opens but does not seal; a secret of an unknown key is reported as such', () => {
  const [former, current] = [randomBytes(32), randomBytes(32)];
  const sealed = sealWith(former).seal(OWNER, 'whsec_x');
  const { seal, open } = sealWith(current, former);
  expect(open(OWNER, sealed)).toBe('whsec_x');
  expect(sealWith(current).open(OWNER, seal(OWNER, 'whsec_y'))).toBe('whsec_y');
  expect(() => sealWith(current).open(OWNER, sealed)).toThrow(
    'A webhook secret was encrypted with a SECRET_KEY that this process does not have.',
  );
});
