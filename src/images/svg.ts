import { type Matrix, pathOf, QUIET_ZONE } from '../../common/qr/matrix.ts';

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
  matrix: Matrix,
  { foreground, background, title }: { foreground: string; background: string; title: string },
): string {
  const across = matrix.modules + 2 * QUIET_ZONE;
  const escaped = title.replace(NOT_XML, ' ').replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${across} ${across}" shape-rendering="crispEdges" role="img">` +
    `<title>${escaped}</title>` +
    `<path fill="${background}" d="M0 0h${across}v${across}H0z"/>` +
    `<path fill="${foreground}" d="${pathOf(matrix)}"/></svg>\n`
  );
}
