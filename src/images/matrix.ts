import qrcode from 'qrcode';

/** The modules of a QR code, without its quiet zone. */
export interface Matrix {
  /** Modules on a side. */
  readonly modules: number;
  /** Row by row: 1 is dark. */
  readonly dark: Uint8Array;
}

/** Modules that stay light on every side. Source: docs/contract.md, "Limits". ISO/IEC 18004 asks for four. */
export const QUIET_ZONE = 2;

/** Encodes a text at error correction level M. Throws when it fits no version: more than 2,331 bytes. */
export function matrixOf(text: string): Matrix {
  const { modules } = qrcode.create(text, { errorCorrectionLevel: 'M' });
  return { modules: modules.size, dark: modules.data };
}
