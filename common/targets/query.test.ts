import fc from 'fast-check';
import { expect, test } from 'vitest';
import { queryAdder } from './query.ts';

const piece = fc.constantFrom('a', 'b', '=', '&', '?', '+', '%', '%61', '%zz', '%E4', '%C3%A4', ' ', '#');

test('parameters of a scan are added as a URL library reads them, but for names that the target has', () => {
  const add = queryAdder('https://example.com/menu?a=own&%C3%A4=own', []);
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
      (query) => {
        const own = [
          ['a', 'own'],
          ['ä', 'own'],
        ];
        const passed = [...new URLSearchParams(`?${query}`)].filter(([name]) => name !== 'a' && name !== 'ä');
        expect([...new URL(add(query)).searchParams]).toEqual([...own, ...passed]);
      },
    ),
    { numRuns: 2_000 },
  );
});
