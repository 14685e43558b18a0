import { expect, test } from 'vitest';
import { fields, table, withoutControlCharacters } from './output.ts';

test('names given by customers stay on one line and can’t control the terminal', () => {
  const name = 'Men\u00fc\u001b]0;x\u0007\u001b[31m\r\nid  qr_x\u009b2J';
  expect(fields({ name })).toBe('name  Men\u00fc ]0;x [31m id  qr_x 2J');
  expect(table([{ name }]).split('\n')).toEqual(['name', 'Men\u00fc ]0;x [31m id  qr_x 2J']);
  expect(withoutControlCharacters('\u001b[2JName it.\nAgain.')).toBe('[2JName it.\nAgain.');
});
