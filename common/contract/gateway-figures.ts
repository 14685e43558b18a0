/**
 * How far the scans of one day got at one run of a gateway. The figures only rise, so whoever hears of them twice, or
 * late, takes the greatest.
 */
export interface GatewayFigures {
  /** Which run: 16 hexadecimal digits. */
  readonly gateway: string;
  /** The scans' UTC day, `YYYY-MM-DD`. */
  readonly day: string;
  readonly answered: number;
  /** Answered ones that neither disk nor memory took. */
  readonly lost: number;
  /** Records handed to the log, by whichever run they were answered. */
  readonly published: number;
}

/** The header of records of `signpost.scans.v1` in which figures travel, a record in each batch. */
export const GATEWAY_FIGURES = 'gateway-figures';

/** Figures as they travel. */
export function writeGatewayFigures(figures: readonly GatewayFigures[]): string {
  return JSON.stringify(
    figures.map(({ gateway, day, answered, lost, published }) => [gateway, day, answered, lost, published]),
  );
}

/** Reads what came with a record; what is no figures is left out, for it must not stand in the way of the scan. */
export function readGatewayFigures(header: string | undefined): GatewayFigures[] {
  if (header === undefined) return [];
  try {
    const told: unknown = JSON.parse(header);
    return Array.isArray(told) ? told.flatMap(figuresOf) : [];
  } catch {
    return [];
  }
}

function figuresOf(row: unknown): GatewayFigures[] {
  if (!Array.isArray(row)) return [];
  const [gateway, day, ...counts] = row as unknown[];
  const [answered, lost, published] = counts as number[];
  const known = typeof gateway === 'string' && /^[0-9a-f]{16}$/.test(gateway) && isDay(day);
  return known && counts.length === 3 && counts.every(isCount)
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
