import qrcode from 'qrcode';
import { withBestMask } from './mask.ts';
import { textSegments } from './text-segments.ts';

/** The modules of a QR code, without its quiet zone. */
export interface Matrix {
  /** Modules per side. */
  readonly modules: number;
  /** Row by row: 1 is dark. */
  readonly dark: Uint8Array;
}

/** Light modules on every side. Source: docs/contract.md, "Limits". The standard requires four (ISO/IEC 18004). */
export const QUIET_ZONE = 2;

/** Encodes a text at error correction level M. Throws above 2,331 bytes, the capacity of the largest version. */
export function matrixOf(text: string): Matrix {
  const { modules } = qrcode.create(textSegments(text), { errorCorrectionLevel: 'M', maskPattern: 0 });
  return { modules: modules.size, dark: withBestMask(modules) };
}
