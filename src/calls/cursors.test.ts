import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { cursors } from './cursors.ts';

const { byId, byName } = cursors(randomBytes(32));
const { issue, read } = byId;
const account = newUuid();

test('a cursor yields its position for the account that it was issued to', () => {
  const code = newUuid();
  expect(read(account, issue(account, code))).toBe(code);
});

test('a cursor is rejected for another account and with another key', () => {
  const cursor = issue(account, newUuid());
  expect(read(newUuid(), cursor)).toBeUndefined();
  expect(cursors(randomBytes(32)).byId.read(account, cursor)).toBeUndefined();
});

test('a cursor with any bit changed is rejected', () => {
  const bytes = Buffer.from(issue(account, newUuid()), 'base64url');
  fc.assert(
    fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(read(account, changed.toString('base64url'))).toBeUndefined();
    }),
  );
});

test('a cursor spelled in another way that decodes to the same bytes is rejected', () => {
  const cursor = issue(account, newUuid());
  const decoded = Buffer.from(cursor, 'base64url');
  const [start, last] = [cursor.slice(0, -1), cursor.charCodeAt(cursor.length - 1)];
  // 32 bytes end with a character of which only four of six bits count: the next one has the same four.
  const next = String.fromCharCode(last + 1);
  for (const other of [`${cursor}!`, `${cursor}=`, `${cursor}=abc`, `${start}.${cursor.at(-1)}`, `${start}${next}`]) {
    expect(Buffer.from(other, 'base64url')).toEqual(decoded);
    expect(read(account, other)).toBeUndefined();
  }
});

test('a cursor by name yields any name, for its own list only', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      const cursor = byName.issue(`tags ${account}`, name);
      expect(byName.read(`tags ${account}`, cursor)).toBe(name);
      expect(byName.read(`folders ${account}`, cursor)).toBeUndefined();
    }),
  );
});

test('any other text is rejected', () => {
  fc.assert(
    fc.property(fc.string(), (cursor) => {
      expect(read(account, cursor)).toBeUndefined();
      expect(byName.read(account, cursor)).toBeUndefined();
    }),
  );
});
