import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { isLonger } from './is-longer.ts';

test('counts characters', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'ü', '🍕', '\ud800'), maxLength: 12 });
  fc.assert(
    fc.property(text, fc.nat(8), (text, most) => {
      expect(isLonger(text, most)).toBe([...text].length > most);
    }),
  );
});

test('does not split a text that is certainly longer, or not', () => {
  const split = vi.spyOn(String.prototype, Symbol.iterator);
  expect([isLonger('🍕'.repeat(101), 100), isLonger('x'.repeat(100), 100)]).toEqual([true, false]);
  expect(split).not.toHaveBeenCalled();
  split.mockRestore();
});
