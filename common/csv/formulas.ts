/** What spreadsheets take a text for a formula by, some also in full width. */
const SIGNS = '[=+\\-@\\t＝＋－＠]';

/**
 * Where a cell may begin: where the language of the reader separates lists by semicolons, Excel splits the lines of CSV
 * files there, and disregards quotes inside of what it takes for a cell.
 */
const BEGINNING = '(?<=^|[;\\r\\n])';

const FORMULA = new RegExp(`${BEGINNING}${SIGNS}[^;\\r\\n]*`, 'g');
const ESCAPED = new RegExp(`${BEGINNING}'(?=${SIGNS})`, 'g');

/** A cell of a CSV file in which a spreadsheet finds no formula: an apostrophe prevents each. Numbers stay. */
export function escapeFormulas(cell: string): string {
  return cell.replace(FORMULA, (text) => (Number.isNaN(Number(text)) ? `'${text}` : text));
}

/** A cell as it was before `escapeFormulas`. */
export function unescapeFormulas(cell: string): string {
  return cell.replace(ESCAPED, '');
}
