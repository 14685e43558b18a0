import { expect, onTestFinished, test, vi } from 'vitest';
import { fields, fittedTable, outputWidth, table, withoutControlCharacters } from './output.ts';

test('names given by customers stay on one line and can’t control the terminal', () => {
  const name = 'Men\u00fc\u001b]0;x\u0007\u001b[31m\r\nid  qr_x\u009b2J';
  expect(fields({ name })).toBe('name  Men\u00fc ]0;x [31m id  qr_x 2J');
  expect(table([{ name }]).split('\n')).toEqual(['name', 'Men\u00fc ]0;x [31m id  qr_x 2J']);
  expect(withoutControlCharacters('\u001b[2JName it.\nAgain.')).toBe('[2JName it.\nAgain.');
});

test('a table is truncated to the width: its shortened columns, the first one first, each to its least width', () => {
  const records = [{ name: 'A long name of a code', type: 'dynamic', target: 'https://example.com/menu' }];
  const full = 'A long name of a code  dynamic  https://example.com/menu';
  const row = (width: number) => fittedTable(records, { name: 12, target: 10 }, width).split('\n')[1];
  expect(row(full.length)).toBe(full);
  expect(row(full.length - 1)).toBe('A long name of a co…  dynamic  https://example.com/menu');
  expect(row(full.length - 9)).toBe('A long name…  dynamic  https://example.com/menu');
  expect(row(full.length - 10)).toBe('A long name…  dynamic  https://example.com/me…');
  expect(row(10)).toBe('A long name…  dynamic  https://e…');
  expect(fittedTable([], {}, 10)).toBe('none');
});

test('output is as wide as COLUMNS says, else as the terminal, else unlimited', () => {
  const { columns } = process.stdout;
  onTestFinished(() => {
    Object.assign(process.stdout, { columns });
    vi.unstubAllEnvs();
  });
  vi.stubEnv('COLUMNS', '80');
  Object.assign(process.stdout, { columns: 120 });
  expect(outputWidth()).toBe(80);
  vi.stubEnv('COLUMNS', 'wide');
  expect(outputWidth()).toBe(120);
  Object.assign(process.stdout, { columns: undefined });
  expect(outputWidth()).toBe(Number.POSITIVE_INFINITY);
});

test('a table may have any number of rows', () => {
  const lines = table(Array.from({ length: 150_000 }, (_, row) => ({ row }))).split('\n');
  expect(lines).toHaveLength(150_001);
  expect(lines.at(-1)).toBe('149999');
});

test('cells are truncated between characters, of which wide ones count as two', () => {
  expect(fittedTable([{ name: '🍕🍕🍕🍕', id: 1 }], { name: 4 }, 9)).toBe('name   id\n🍕🍕…  1');
  expect(fittedTable([{ name: '𐇡𐇡𐇡𐇡𐇡𐇡', id: 1 }], { name: 4 }, 9)).toBe('name   id\n𐇡𐇡𐇡𐇡…  1');
});
