import { expect, test } from 'vitest';
import { EMPTY_DRAFT, encodedBy } from './draft.ts';

test('a network whose name is too long encodes nothing, however long it is', () => {
  const encoded = (ssid: string) => encodedBy({ ...EMPTY_DRAFT, kind: 'wifi', security: 'none', ssid }, '');
  expect(encoded('é'.repeat(16))).toBe(`WIFI:T:nopass;S:${'é'.repeat(16)};;`);
  expect(encoded('é'.repeat(17))).toBeUndefined();
  // More than fits any code.
  expect(encoded('x'.repeat(3_000))).toBeUndefined();
});
