import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newUuid } from '../contract/ids.ts';
import { cursors } from './cursor.ts';

const { issue, read } = cursors(randomBytes(32));
const account = newUuid();

test('a cursor gives its position back to the account that it was issued to', () => {
  const code = newUuid();
  expect(read(account, issue(account, code))).toBe(code);
});

test('another account can not use it, nor does another key accept it', () => {
  const cursor = issue(account, newUuid());
  expect(read(newUuid(), cursor)).toBeUndefined();
  expect(cursors(randomBytes(32)).read(account, cursor)).toBeUndefined();
});

test('a cursor with any bit changed is refused', () => {
  const bytes = Buffer.from(issue(account, newUuid()), 'base64url');
  fc.assert(
    fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(read(account, changed.toString('base64url'))).toBeUndefined();
    }),
  );
});

test('any other text is refused', () => {
  fc.assert(
    fc.property(fc.string(), (cursor) => {
      expect(read(account, cursor)).toBeUndefined();
    }),
  );
});
