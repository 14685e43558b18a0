import { styleText } from 'node:util';

const LEVELS = '▁▂▃▄▅▆▇█';
/** Eighths of a character, for the end of a bar. */
const EIGHTHS = ' ▏▎▍▌▋▊▉█';

/** Colours a part of a chart like the other charts of Signpost, if standard output is a terminal with colours. */
export function accent(text: string): string {
  return styleText('green', text);
}

/**
 * A line of one character per value: `·` for zero, otherwise a block whose height is proportional to the value. The
 * highest value fills the line.
 */
export function sparkline(values: readonly number[]): string {
  const most = Math.max(...values);
  return values.map((value) => (value === 0 ? '·' : LEVELS[Math.ceil((value / most) * LEVELS.length) - 1])).join('');
}

/** A horizontal bar from zero: `width` characters for `most`, in steps of an eighth, and visible unless it is zero. */
export function bar(value: number, most: number, width: number): string {
  const eighths = value === 0 ? 0 : Math.max(1, Math.round((value / most) * width * 8));
  return '█'.repeat(eighths >> 3) + (eighths % 8 === 0 ? '' : EIGHTHS[eighths % 8]);
}

/**
 * Sums of consecutive values such that at most `count` remain. The last group is complete, the first one may be
 * smaller.
 */
export function grouped(values: readonly number[], count: number): { sums: number[]; size: number } {
  const size = Math.max(1, Math.ceil(values.length / count));
  const sums: number[] = [];
  for (let end = values.length; end > 0; end -= size) {
    sums.unshift(values.slice(Math.max(0, end - size), end).reduce((sum, value) => sum + value, 0));
  }
  return { sums, size };
}
