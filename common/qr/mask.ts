const MASKS = 8;

/** Format information of error correction level M for each mask. Source: ISO/IEC 18004, annex C. */
const FORMAT = [0x5412, 0x5125, 0x5e7c, 0x5b4b, 0x45f9, 0x40ce, 0x4f97, 0x4aa0];

/** The number of rows and columns after which all masks repeat. */
const PERIOD = 12;

/** By row and column within a period: bit p is set where mask p and mask 0 differ. Source: ISO/IEC 18004, table 10. */
const AGAINST_MASK_0 = Uint8Array.from({ length: PERIOD * PERIOD }, (_, at) => {
  const [row, column] = [Math.floor(at / PERIOD), at % PERIOD];
  const product = row * column;
  const inverts = [
    (row + column) % 2,
    row % 2,
    column % 3,
    (row + column) % 3,
    (Math.floor(row / 2) + Math.floor(column / 3)) % 2,
    (product % 2) + (product % 3),
    ((product % 2) + (product % 3)) % 2,
    ((product % 3) + ((row + column) % 2)) % 2,
  ].reduce((bits, remainder, mask) => (remainder === 0 ? bits | (1 << mask) : bits), 0);
  return inverts & 1 ? ~inverts : inverts;
});

/** The matrix that `qrcode` creates, row by row. */
interface MaskedMatrix {
  readonly size: number;
  /** 1 is dark. */
  readonly data: Uint8Array;
  /** 1 where masks are not applied, such as in finder patterns. */
  readonly reservedBit: Uint8Array;
}

/**
 * The modules, 1 for dark, of a code at level M under the mask with the lowest penalty, given those under mask 0. It
 * chooses as `qrcode` does, but for all masks in one pass: a module is a byte whose bit p is its colour under mask p.
 * `qrcode` makes some 50 passes, which took half of the time to create a code.
 */
export function withBestMask({ size, data, reservedBit }: MaskedMatrix): Uint8Array {
  const modules = new Uint8Array(size * size);
  for (let row = 0, at = 0; row < size; row++) {
    const period = (row % PERIOD) * PERIOD;
    for (let column = 0; column < size; column++, at++) {
      const module = data[at] ? 0xff : 0;
      modules[at] = reservedBit[at] ? module : module ^ (AGAINST_MASK_0[period + (column % PERIOD)] as number);
    }
  }
  writeFormat(modules, size);
  const penalties = penaltiesOf(modules, size);
  const best = penalties.indexOf(Math.min(...penalties));
  for (let at = 0; at < modules.length; at++) modules[at] = ((modules[at] as number) >> best) & 1;
  return modules;
}

/** Writes both copies of the format information: around the first finder pattern, and beside the other two. */
function writeFormat(modules: Uint8Array, size: number): void {
  for (let bit = 0; bit < 15; bit++) {
    const module = FORMAT.reduce((bits, format, mask) => bits | (((format >> bit) & 1) << mask), 0);
    const row = bit < 6 ? bit : bit < 8 ? bit + 1 : size - 15 + bit;
    const column = bit < 8 ? size - 1 - bit : bit < 9 ? 7 : 14 - bit;
    modules[row * size + 8] = module;
    modules[8 * size + column] = module;
  }
}

/**
 * The penalty of each mask: 3 for five modules of one colour in a line and 1 for each further one, 3 for each square of
 * four, 40 for each sequence like a finder pattern beside four light modules, and 10 for each 5 % that the dark share
 * is off 50 %.
 */
function penaltiesOf(modules: Uint8Array, size: number): number[] {
  // Indexed by the set of masks under which a pattern occurs, so that one addition counts it for all of them.
  const points = new Uint32Array(256);
  const dark = new Uint32Array(256);
  for (let line = 0; line < size; line++) {
    addLine(points, modules, size, line * size, 1);
    addLine(points, modules, size, line, size);
    if (line > 0) addSquares(points, modules, size, line * size);
  }
  for (const module of modules) (dark[module] as number)++;
  return Array.from({ length: MASKS }, (_, mask) => {
    const share = (sumUnder(mask, dark) * 100) / modules.length;
    return sumUnder(mask, points) + 10 * Math.abs(Math.ceil(share / 5) - 10);
  });
}

function sumUnder(mask: number, counts: Uint32Array): number {
  let sum = 0;
  for (let masks = 0; masks < counts.length; masks++) sum += ((masks >> mask) & 1) * (counts[masks] as number);
  return sum;
}

/** Points for runs of a colour and for sequences like a finder pattern, in a row (`step` 1) or column (`step` size). */
function addLine(points: Uint32Array, modules: Uint8Array, size: number, start: number, step: number): void {
  const module = (at: number) => modules[at] as number;
  const end = start + size * step;
  let [m1, m2, m3, m4, m5, m6, runBefore] = [0, 0, 0, 0, 0, 0, 0];
  for (let at = start, n = 0; at < end; at += step, n++) {
    const m = module(at);
    const light = n < 4 ? 0 : ~(m | m1 | m2 | m3 | m4) & 0xff;
    const run = light | (m & m1 & m2 & m3 & m4);
    // A run of five is worth three, one for itself and two for its start.
    (points[run] as number)++;
    (points[run & ~runBefore] as number) += 2;
    const finder = m & ~m1 & m2 & m3 & m4 & ~m5 & m6;
    if (finder !== 0) {
      const ahead = at - 7 * step;
      const [lightBefore, lightAfter] = [lightFour(n >= 10, ahead, -step), lightFour(n < size - 4, at + step, step)];
      (points[finder & lightBefore] as number) += 40;
      (points[finder & lightAfter] as number) += 40;
    }
    m6 = m5;
    m5 = m4;
    m4 = m3;
    m3 = m2;
    m2 = m1;
    m1 = m;
    runBefore = run;
  }

  function lightFour(within: boolean, at: number, by: number): number {
    return within ? ~(module(at) | module(at + by) | module(at + 2 * by) | module(at + 3 * by)) : 0;
  }
}

/** Points for squares of one colour in the row that starts at `start` and the one above. */
function addSquares(points: Uint32Array, modules: Uint8Array, size: number, start: number): void {
  for (let at = start + 1; at < start + size; at++) {
    const [one, two] = [modules[at] as number, modules[at - 1] as number];
    const [three, four] = [modules[at - size] as number, modules[at - size - 1] as number];
    (points[(one & two & three & four) | (~(one | two | three | four) & 0xff)] as number) += 3;
  }
}
