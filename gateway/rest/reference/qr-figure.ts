import qrcode from 'qrcode';
import { escapeHtml } from '../../http/escape-html.ts';

/** The quiet zone around a code, in modules. */
const QUIET = 2;

/** The image of a code as this API draws it, with the address in it. */
export function qrFigure(address: string, alt: string): string {
  const { size, data } = qrcode.create(address, { errorCorrectionLevel: 'M' }).modules;
  const rows = Array.from({ length: size }, (_, y) => {
    const row = [...data.subarray(y * size, (y + 1) * size)].join('');
    return [...row.matchAll(/1+/g)]
      .map(({ 0: run, index }) => `M${index + QUIET} ${y + QUIET}.5h${run.length}`)
      .join('');
  });
  const side = size + 2 * QUIET;
  return `<figure class="print"><svg viewBox="0 0 ${side} ${side}" shape-rendering="crispEdges" role="img" aria-label="${escapeHtml(alt)}"><path fill="#fff" d="M0 0h${side}v${side}H0z"/><path stroke="#000" d="${rows.join('')}"/></svg><figcaption><code>${escapeHtml(address)}</code></figcaption></figure>`;
}
