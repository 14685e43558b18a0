/**
 * Counts of the scans of one day in one run of a gateway. They only increase, so a receiver of repeated or late figures
 * keeps the greatest.
 */
export interface GatewayFigures {
  /** The id of the run: 16 hexadecimal digits. */
  readonly gateway: string;
  /** The scans' UTC day, `YYYY-MM-DD`. */
  readonly day: string;
  readonly answered: number;
  /** Answered scans that could be stored neither on disk nor in memory. */
  readonly lost: number;
  /** Records published to the log, whichever run answered them. */
  readonly published: number;
}

/** The record header that contains figures, on one record of each batch in `signpost.scans.v1`. */
export const GATEWAY_FIGURES = 'gateway-figures';

/** Serializes figures for the header. */
export function writeGatewayFigures(figures: readonly GatewayFigures[]): string {
  return JSON.stringify(
    figures.map(({ gateway, day, answered, lost, published }) => [gateway, day, answered, lost, published]),
  );
}

/** Parses the header of a record; invalid figures are ignored, because they must not block the scan. */
export function readGatewayFigures(header: string | undefined): GatewayFigures[] {
  if (header === undefined) return [];
  try {
    const rows: unknown = JSON.parse(header);
    return Array.isArray(rows) ? rows.flatMap(figuresOf) : [];
  } catch {
    return [];
  }
}

function figuresOf(row: unknown): GatewayFigures[] {
  if (!Array.isArray(row)) return [];
  const [gateway, day, ...counts] = row as unknown[];
  const [answered, lost, published] = counts as number[];
  const isValid = typeof gateway === 'string' && /^[0-9a-f]{16}$/.test(gateway) && isDay(day);
  return isValid && counts.length === 3 && counts.every(isCount)
    ? [{ gateway, day, answered, lost, published } as GatewayFigures]
    : [];
}

function isDay(day: unknown): boolean {
  const time = typeof day === 'string' && /^20\d\d-\d\d-\d\d$/.test(day) ? Date.parse(day) : Number.NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(String(day));
}

function isCount(count: unknown): boolean {
  return Number.isSafeInteger(count) && (count as number) >= 0;
}
