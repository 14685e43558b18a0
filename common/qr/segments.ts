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

/** Bits of a segment's mode and count in versions 1 to 9, by mode. Source: ISO/IEC 18004, 7.4.1. */
const HEADER_BITS = [14, 13, 12];

/** Bits that version 9 holds at error correction level M. Source: ISO/IEC 18004, table 7. */
const CAPACITY_BITS = 1_456;

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
 * The segments of an ASCII text, exactly those that `qrcode` chooses, so that codes stay as they are. `qrcode` finds them as
 * the shortest path through a graph of strings, which takes half of the time to create an ordinary code. As each run
 * follows the one before, it suffices here to keep the best choice for each mode. Returns undefined for texts whose runs
 * need a version above 9, where segments have longer counts, and for an empty text: those are left to `qrcode`.
 */
export function shortTextSegments(text: string): QRCodeSegment[] | undefined {
  const runs = text.match(RUNS);
  if (!runs) return undefined;
  let rawBits = 0;
  let choices: Choice[] = [];
  for (const run of runs) {
    const first = firstMode(run);
    rawBits += segmentBits(first, run.length);
    if (rawBits > CAPACITY_BITS) return undefined;
    choices = continued(choices, first, run.length);
  }
  return segmentsOf(runs, choices[0]);
}

function firstMode(run: string): number {
  if (DIGIT.test(run)) return NUMERIC;
  return ALPHANUMERIC_START.test(run) ? ALPHANUMERIC : BYTE;
}

function segmentBits(mode: number, length: number): number {
  return (HEADER_BITS[mode] as number) + dataBits(mode, length);
}

/** Bits of characters, without mode and count. Source: ISO/IEC 18004, 7.4.3 to 7.4.5. */
function dataBits(mode: number, length: number): number {
  if (mode === BYTE) return 8 * length;
  if (mode === ALPHANUMERIC) return 11 * (length >> 1) + 6 * (length & 1);
  return 10 * Math.floor(length / 3) + (length % 3 === 0 ? 0 : 3 * (length % 3) + 1);
}

/**
 * The choices for the next run, in the order in which `qrcode` visits them: by bits, then as it visited those before. Of two
 * that are as short, the one visited first is kept. Like `qrcode`, it counts the characters of a choice's segment once for
 * all modes of the next run, so that the order of the modes matters.
 */
function continued(choices: readonly Choice[], first: number, length: number): Choice[] {
  const byMode = choices.toSorted((one, other) => one.mode - other.mode);
  const next: { readonly choice: Choice; readonly rank: number }[] = [];
  for (let mode = first; mode < MODES.length; mode++) {
    const bitsAfter = new Map(byMode.map((choice) => [choice, choice.bits + bitsOfRun(choice, mode, length)]));
    let [before, bits, rank] = [
      undefined as Choice | undefined,
      choices.length === 0 ? segmentBits(mode, length) : Infinity,
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
function bitsOfRun(choice: Choice, mode: number, length: number): number {
  const isSameSegment = choice.mode === mode;
  const before = isSameSegment ? choice.length : 0;
  choice.length = before + length;
  return isSameSegment ? dataBits(mode, before + length) - dataBits(mode, before) : segmentBits(mode, length);
}

/** The runs as segments: neighbours in the same mode are one. */
function segmentsOf(runs: readonly string[], last: Choice | undefined): QRCodeSegment[] {
  const segments: QRCodeSegment[] = [];
  let [choice, at] = [last, runs.length];
  while (choice) {
    const mode = choice.mode;
    let data = '';
    for (; choice?.mode === mode; choice = choice.before) data = `${runs[--at]}${data}`;
    segments.unshift({ data, mode: MODES[mode] } as QRCodeSegment);
  }
  return segments;
}
