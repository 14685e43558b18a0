import { expect, test } from 'vitest';
import { designWarning } from './design-warnings.ts';

test.each([
  ['#000', '#fff', undefined],
  // 3.0:1 and 2.99:1.
  ['#949494', '#ffffff', undefined],
  ['#959595', '#ffffff', /contrast of the colours is only 3\.0:1; below 3:1/],
  ['#ff0', '#fff', /only 1\.1:1/],
  ['#fff', '#000', /light modules on a dark background/],
  ['#123456', '#123456', /only 1\.0:1/],
])('%s on %s', (foreground, background, warning) => {
  const given = designWarning(foreground, background);
  if (warning === undefined) expect(given).toBeUndefined();
  else expect(given).toMatch(warning);
});
