/** Without it Excel takes a CSV file for one in the encoding of the reader's region. */
const BYTE_ORDER_MARK = '\ufeff';

/** Offers a table as a CSV file (RFC 4180) to keep. */
export function downloadCsv(name: string, rows: readonly (readonly string[])[]): void {
  const lines = rows.map((row) => `${row.map(quoted).join(',')}\r\n`);
  downloadFile(name, 'text/csv;charset=utf-8', BYTE_ORDER_MARK + lines.join(''));
}

/** Offers a file to keep. */
export function downloadFile(name: string, type: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** A value as a field. Spreadsheets take a text that begins with these for a formula, which an apostrophe prevents. */
function quoted(value: string): string {
  const safe = /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
