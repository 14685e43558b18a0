import { expect, test } from 'vitest';
import { messages } from '../../messages/en/index.ts';
import { checkRows, guessMapping, tagsCell } from './check-rows.ts';
import { readCsv } from './read-csv.ts';

const read = async (content: string | Buffer) => {
  const file = await readCsv(new File([content as BlobPart], 'codes.csv'));
  if ('problem' in file) throw new Error(file.problem);
  return file;
};

test.each([
  ['below empty lines', '\r\n\r\nurl;name\r\nhttps://example.com;A\r\n'],
  ['with commas in quotes', '"url";"name, or, so"\r\nhttps://example.com;A\r\n'],
  ['below the line in which Excel reads the delimiter', 'sep=;\r\nurl;name\r\nhttps://example.com;A\r\n'],
  ['in UTF-16, as "Unicode Text" of Excel', Buffer.from('\ufeffurl\tname\r\nhttps://example.com\tA\r\n', 'utf16le')],
  ['in UTF-16, big-endian', Buffer.from('\ufeffurl\tname\r\nhttps://example.com\tA\r\n', 'utf16le').swap16()],
  ['in UTF-8 with a byte order mark', '\ufeffurl,name\nhttps://example.com,A\n'],
])('a header is read %s', async (_, content) => {
  const { header, rows } = await read(content);
  expect(header).toEqual(['url', expect.stringMatching(/^name/)]);
  expect(rows).toEqual([['https://example.com', 'A']]);
});

test('cells that a download protects from being a formula are read as they were', async () => {
  const { rows } = await read("url,name,ref\nhttps://example.com,'-20% off,'@7\nhttps://example.com,'quoted',-7\n");
  expect(rows.map(([, ...cells]) => cells)).toEqual([
    ['-20% off', '@7'],
    ["'quoted'", '-7'],
  ]);
});

test('rows have the numbers that a spreadsheet shows', async () => {
  const lines = [
    '',
    'url;name',
    '',
    'https://example.com;"two',
    'lines"',
    ';',
    'nowhere;B',
    '',
    'https://example.com;C',
  ];
  const file = await read(lines.join('\n'));
  expect(file.numbers).toEqual([4, 6, 8]);
  const { problems } = checkRows(file, guessMapping(file.header), [], messages);
  expect(problems).toMatchObject([{ row: 1, number: 6, isError: true }]);
});

test('malformed content is reported with the line of the file', async () => {
  const file = new File(['sep=;\nurl;name\nhttps://example.com;"A" B\n'], 'codes.csv');
  expect(await readCsv(file)).toEqual({ problem: 'malformed', line: 3 });
});

test('a tag that no code can have is reported before the batch is created', async () => {
  const file = await read(`url,tags\nhttps://example.com,a;${'x'.repeat(101)}\n`);
  const { good, problems } = checkRows(file, guessMapping(file.header), [], messages);
  expect(good).toHaveLength(1);
  expect(problems).toMatchObject([{ isError: false, value: 'x'.repeat(101) }]);
});

test.each([
  ['a, b;c|d', ['a', 'b', 'c', 'd']],
  [' "Berlin, Mitte" ;summer', ['Berlin, Mitte', 'summer']],
  ['12" vinyl, "so" called', ['12" vinyl', '"so" called']],
  ['"a ""b"" | c"', ['a "b" | c']],
  ['"a, b', ['"a', 'b']],
  [' ,"", ', []],
])('the tags of %j are %j, and can be read again from a file of failed rows', (cell, tags) => {
  const tagsOf = (content: string) => {
    const file = { name: '', version: '', header: [], rows: [['https://example.com', content]], numbers: [2] };
    return checkRows(file, { target_url: 0, tags: 1 }, [], messages).good[0]?.tags;
  };
  expect(tagsOf(cell)).toEqual(tags);
  expect(tagsOf(tagsCell(tags))).toEqual(tags);
});

test('a row has its own tags and those for all codes, each once, and at most 20 of them', async () => {
  const own = Array.from({ length: 19 }, (_, n) => `own ${n}`).join(';');
  const file = await read(`url,tags\nhttps://example.com,STRASSE;Menu;menu\nhttps://example.com,${own}\n`);
  const check = (tags: readonly string[]) => checkRows(file, guessMapping(file.header), tags, messages);
  expect(check(['Straße', 'summer']).good.map(({ tags }) => tags)).toEqual([['STRASSE', 'Menu', 'summer']]);
  expect(check(['Straße', 'summer']).problems).toMatchObject([
    { row: 1, isError: true, text: 'More than 20 tags with those for all codes.' },
  ]);
  expect(check(['summer', 'OWN 1']).good).toHaveLength(2);
  // These are refused where they are entered.
  expect(check(Array.from({ length: 21 }, (_, n) => `all ${n}`)).bad).toEqual([]);
  expect(check(['x'.repeat(101)]).problems).toEqual([]);
});
