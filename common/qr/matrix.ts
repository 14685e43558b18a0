import qrcode, { type QRCodeSegment } from 'qrcode';
import { withBestMask } from './mask.ts';

/** The modules of a QR code, without its quiet zone. */
export interface Matrix {
  /** Modules per side. */
  readonly modules: number;
  /** Row by row: 1 is dark. */
  readonly dark: Uint8Array;
}

/** Light modules on every side. Source: docs/contract.md, "Endpoints". The standard requires four (ISO/IEC 18004). */
export const QUIET_ZONE = 2;

/**
 * Encodes a text or segments at error correction level M. Throws above 2,331 bytes, the capacity of the largest
 * version.
 */
export function encode(content: string | QRCodeSegment[]): Matrix {
  const { modules } = qrcode.create(content, { errorCorrectionLevel: 'M', maskPattern: 0 });
  return { modules: modules.size, dark: withBestMask(modules) };
}

/** The dark modules as one SVG path of horizontal runs, one unit per module, with room for the quiet zone. */
export function pathOf({ modules, dark }: Matrix): string {
  let path = '';
  for (let row = 0; row < modules; row++) {
    for (let column = 0; column < modules; column++) {
      const start = column;
      while (column < modules && dark[row * modules + column]) column++;
      if (column > start) path += `M${start + QUIET_ZONE} ${row + QUIET_ZONE}h${column - start}v1h-${column - start}z`;
    }
  }
  return path;
}
