import type { Matrix } from '../../../../common/qr/matrix.ts';

/** Light modules on every side in print: what the standard requires (ISO/IEC 18004, 9.1). */
export const PRINT_QUIET_ZONE = 4;

/** Points per millimetre. */
const POINTS = 72 / 25.4;

/**
 * A PDF of one page that is `width` mm wide and high, quiet zone included: the modules as one vector path. Colours are
 * `#rgb` or `#rrggbb`. A code needs so little of PDF (1.4, ISO 32000-1) that a library of 200 KB would bring nothing.
 */
export function codePdf(
  { modules, dark }: Matrix,
  { width, title, foreground, background }: { width: number; title: string; foreground: string; background: string },
): string {
  const across = modules + 2 * PRINT_QUIET_ZONE;
  const side = (width * POINTS).toFixed(4);
  const rows: string[] = [];
  for (let row = 0; row < modules; row++) {
    for (let column = 0; column < modules; column++) {
      const start = column;
      while (column < modules && dark[row * modules + column]) column++;
      // PDF counts upwards from the bottom.
      if (column > start) {
        rows.push(`${start + PRINT_QUIET_ZONE} ${across - PRINT_QUIET_ZONE - row - 1} ${column - start} 1 re`);
      }
    }
  }
  const scale = ((width * POINTS) / across).toFixed(6);
  const content = [
    `${rgb(background)} rg 0 0 ${side} ${side} re f`,
    `${rgb(foreground)} rg ${scale} 0 0 ${scale} 0 0 cm`,
    ...rows,
    'f',
  ].join('\n');
  return documentOf([
    '<</Type/Catalog/Pages 2 0 R>>',
    '<</Type/Pages/Kids[3 0 R]/Count 1>>',
    `<</Type/Page/Parent 2 0 R/MediaBox[0 0 ${side} ${side}]/Resources<<>>/Contents 4 0 R>>`,
    `<</Length ${content.length}>>stream\n${content}\nendstream`,
    `<</Title${utf16(title)}/Producer(Signpost)>>`,
  ]);
}

/** A file of these objects, numbered from 1: the first is the catalogue, the last describes the document. */
function documentOf(objects: readonly string[]): string {
  let file = '%PDF-1.4\n';
  const offsets = objects.map((object, index) => {
    const offset = file.length;
    file += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const start = file.length;
  const entries = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${entries}`;
  return `${file}trailer\n<</Size ${objects.length + 1}/Root 1 0 R/Info ${objects.length} 0 R>>\nstartxref\n${start}\n%%EOF\n`;
}

/** The components of a colour, between 0 and 1. */
function rgb(colour: string): string {
  const digits = colour.slice(1);
  const pairs = digits.length === 3 ? [...digits].map((digit) => digit + digit) : (digits.match(/../g) ?? []);
  return pairs.map((pair) => (Number.parseInt(pair, 16) / 255).toFixed(4)).join(' ');
}

/** A text as PDF writes any characters: UTF-16 in hexadecimal digits. */
function utf16(text: string): string {
  const units = Array.from({ length: text.length }, (_, index) => text.charCodeAt(index).toString(16).padStart(4, '0'));
  return `<feff${units.join('')}>`;
}
