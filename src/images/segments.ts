import type { QRCodeSegment } from 'qrcode';

/** Modes in which a QR code encodes characters: each also encodes those of the modes before it. */
const MODES = ['numeric', 'alphanumeric', 'byte'] as const;
const NUMERIC = 0;
const ALPHANUMERIC = 1;
const BYTE = 2;

/** The longest parts of a text whose characters have the same first mode. */
const RUNS = /[0-9]+|[A-Z $%*+\-./:]+|[^0-9A-Z $%*+\-./:]+/g;
const DIGIT = /^[0-9]/;
const ALPHANUMERIC_START = /^[A-Z $%*+\-./:]/;

/**
 * Versions whose segments have counts of the same length: what the largest of them, 9, 26 and 40, holds at error
 * correction level M, and the bits of a segment's mode and count, by mode. Source: ISO/IEC 18004, 7.4.1 and table 7.
 */
const VERSIONS = [
  { capacityBits: 1_456, headerBits: [14, 13, 12] },
  { capacityBits: 8_496, headerBits: [16, 15, 20] },
  { capacityBits: 18_672, headerBits: [18, 17, 20] },
] as const;

/** The shortest way to encode the text up to a run, the run itself in the given mode. */
interface Choice {
  readonly mode: number;
  /** Bits of the text up to here. */
  readonly bits: number;
  readonly before: Choice | undefined;
  /** The number of characters in the current segment, as `qrcode` counts them. */
  length: number;
}

/**
 * The segments of a text, exactly those that `qrcode` chooses, so that codes stay as they are. `qrcode` finds them as
 * the shortest path through a graph of strings, which takes half of the time to create an ordinary code, and with
 * hundreds of runs many times the rest. As each run follows the one before, it suffices here to keep the best choice
 * for each mode. Returns undefined for an empty text. Like `qrcode`, it supposes the version that holds the runs in
 * segments of their own.
 */
export function shortestSegments(text: string): QRCodeSegment[] | undefined {
  const runs = text.match(RUNS)?.map((data) => ({ data, first: firstMode(data), length: Buffer.byteLength(data) }));
  if (!runs) return undefined;
  const fits = ({ capacityBits, headerBits }: (typeof VERSIONS)[number]) =>
    runs.reduce((bits, { first, length }) => bits + segmentBits(headerBits, first, length), 0) <= capacityBits;
  const { headerBits } = VERSIONS.find(fits) ?? VERSIONS[2];
  let choices: Choice[] = [];
  for (const { first, length } of runs) choices = continued(choices, first, length, headerBits);
  return segmentsOf(runs, choices[0]);
}

function firstMode(run: string): number {
  if (DIGIT.test(run)) return NUMERIC;
  return ALPHANUMERIC_START.test(run) ? ALPHANUMERIC : BYTE;
}

function segmentBits(headerBits: readonly number[], mode: number, length: number): number {
  return (headerBits[mode] as number) + dataBits(mode, length);
}

/** Bits of characters, without mode and count. Source: ISO/IEC 18004, 7.4.3 to 7.4.5. */
function dataBits(mode: number, length: number): number {
  if (mode === BYTE) return 8 * length;
  if (mode === ALPHANUMERIC) return 11 * (length >> 1) + 6 * (length & 1);
  return 10 * Math.floor(length / 3) + (length % 3 === 0 ? 0 : 3 * (length % 3) + 1);
}

/**
 * The choices for the next run, in the order in which `qrcode` visits them: by bits, then as it visited those before.
 * Of two that are as short, the one visited first is kept. Like `qrcode`, it counts the characters of a choice's
 * segment once for all modes of the next run, so that the order of the modes matters.
 */
function continued(choices: readonly Choice[], first: number, length: number, headerBits: readonly number[]): Choice[] {
  const byMode = choices.toSorted((one, other) => one.mode - other.mode);
  const next: { readonly choice: Choice; readonly rank: number }[] = [];
  for (let mode = first; mode < MODES.length; mode++) {
    const bitsAfter = new Map(
      byMode.map((choice) => [choice, choice.bits + bitsOfRun(choice, mode, length, headerBits)]),
    );
    let [before, bits, rank] = [
      undefined as Choice | undefined,
      choices.length === 0 ? segmentBits(headerBits, mode, length) : Infinity,
      0,
    ];
    for (const [at, choice] of choices.entries()) {
      const total = bitsAfter.get(choice) as number;
      if (total < bits) [before, bits, rank] = [choice, total, at];
    }
    next.push({ choice: { mode, bits, before, length: 0 }, rank });
  }
  next.sort((one, other) => one.choice.bits - other.choice.bits || one.rank - other.rank);
  return next.map(({ choice }) => choice);
}

/** Bits of a run after a choice: in the same segment if the mode is the same, otherwise in a new one. */
function bitsOfRun(choice: Choice, mode: number, length: number, headerBits: readonly number[]): number {
  const isSameSegment = choice.mode === mode;
  const before = isSameSegment ? choice.length : 0;
  choice.length = before + length;
  if (!isSameSegment) return segmentBits(headerBits, mode, length);
  return dataBits(mode, before + length) - dataBits(mode, before);
}

/** The runs as segments: neighbours in the same mode are one. */
function segmentsOf(runs: readonly { readonly data: string }[], last: Choice | undefined): QRCodeSegment[] {
  const segments: QRCodeSegment[] = [];
  let [choice, at] = [last, runs.length];
  while (choice) {
    const mode = choice.mode;
    let data = '';
    for (; choice?.mode === mode; choice = choice.before) data = `${runs[--at]?.data}${data}`;
    segments.unshift({ data, mode: MODES[mode] } as QRCodeSegment);
  }
  return segments;
}
