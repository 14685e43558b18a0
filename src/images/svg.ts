import { type Matrix, QUIET_ZONE } from './matrix.ts';

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** Characters not allowed in XML 1.0, and the other control characters. */
const NOT_XML = /[\p{Cc}\p{Cs}\ufffe\uffff]/gu;

/** An SVG with one unit per module: the background, and all dark modules as one path of horizontal runs. */
export function renderSvg(
  { modules, dark }: Matrix,
  { foreground, background, title }: { foreground: string; background: string; title: string },
): string {
  const across = modules + 2 * QUIET_ZONE;
  let path = '';
  for (let row = 0; row < modules; row++) {
    for (let column = 0; column < modules; column++) {
      const start = column;
      while (column < modules && dark[row * modules + column]) column++;
      if (column > start) path += `M${start + QUIET_ZONE} ${row + QUIET_ZONE}h${column - start}v1h-${column - start}z`;
    }
  }
  const escaped = title.replace(NOT_XML, ' ').replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${across} ${across}" shape-rendering="crispEdges" role="img">` +
    `<title>${escaped}</title>` +
    `<path fill="${background}" d="M0 0h${across}v${across}H0z"/>` +
    `<path fill="${foreground}" d="${path}"/></svg>\n`
  );
}
