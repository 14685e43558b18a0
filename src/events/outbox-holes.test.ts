import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatHoles, type Hole, parseHoles, within, without } from './outbox-holes.ts';

const hole = fc
  .record({ first: fc.bigInt({ min: 1n, max: 200n }), length: fc.bigInt({ min: 1n, max: 50n }) })
  .map(({ first, length }): Hole => ({ first, end: first + length }));
const numbers = fc
  .uniqueArray(fc.bigInt({ min: 1n, max: 250n }), { maxLength: 60 })
  .map((all) => all.sort((a, b) => Number(a - b)));

const numbersOf = (holes: readonly Hole[]) =>
  holes.flatMap(({ first, end }) => Array.from({ length: Number(end - first) }, (_, index) => first + BigInt(index)));

test('a hole loses exactly the ids that are found', () => {
  fc.assert(
    fc.property(hole, numbers, (each, found) => {
      const all = numbersOf([each]);
      expect(numbersOf(without(each, found))).toEqual(all.filter((number) => !found.includes(number)));
      expect(numbersOf(within(each, found))).toEqual(all.filter((number) => found.includes(number)));
    }),
  );
});

test('formatted holes are parsed unchanged', () => {
  fc.assert(
    fc.property(fc.array(hole), (holes) => {
      expect(parseHoles(formatHoles(holes))).toEqual(holes);
    }),
  );
});
