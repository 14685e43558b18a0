import type { Asked } from './http.ts';

/** A time with a fault in it: from when it is injected until the next one is. */
export interface FaultWindow {
  readonly fault: string;
  readonly startedAt: number;
  operations: number;
  /** Requests without a whole answer, and 503s. */
  unanswered: number;
  unavailable: number;
  /** The longest that a client waited for an answer or its absence, in ms. */
  longestMs: number;
  /** Until everything worked again after the fault was taken back, in ms; undefined where it never did. */
  recoveredMs: number | undefined;
}

/** What a client asked of a code of its own; nobody else changes the code. */
export interface Change {
  /** Counts up for each code; the target ends with it. */
  readonly number: number;
  readonly kind: 'create' | 'update' | 'delete';
  readonly paused: boolean;
  /** Refused: it did not happen, for certain. Unknown: there was no answer, or one that says that this is unknown. */
  outcome: 'acknowledged' | 'refused' | 'unknown';
  endedAt: number;
}

export interface TrackedCode {
  readonly account: TortureAccount;
  /** Its name, and a part of its targets. */
  readonly key: string;
  readonly id: string;
  readonly shortCode: string;
  readonly changes: Change[];
}

export interface TortureAccount {
  readonly id: string;
  readonly apiKey: string;
}

/** A creation of a code or of a batch by a name that nothing else has. */
export interface Creation {
  readonly account: TortureAccount;
  readonly name: string;
  /** 1 for a code. */
  readonly rows: number;
  readonly kind: 'code' | 'batch';
  outcome: Change['outcome'];
  endedAt: number;
  /** Of the code or the batch. */
  id?: string;
}

export interface AskedScan {
  /** A host that is the scan's referrer, and so stands in its row. */
  readonly token: string;
  readonly code: TrackedCode;
  /** Index. */
  readonly gateway: number;
  readonly endedAt: number;
  /** Whether a redirect or the page of a paused code came: then it has to be counted. */
  readonly answered: boolean;
}

/** Something that went wrong with an operation, and when. */
export interface Finding {
  readonly kind: 'lost' | 'duplicated' | 'undone' | 'wrong' | 'documented';
  readonly at: number;
  readonly what: string;
  /** Of a documented loss: how old the scan was then, in ms. */
  readonly ageMs?: number;
}

/** A request whose client waited for more than `LONG_MS` for an answer, or for its connection to break. */
export interface LongWait {
  readonly what: string;
  readonly startedAt: number;
  readonly endedAt: number;
}

const LONG_MS = 5_000;

/** See `Ledger.documentedLosses`; times in ms since 1970. */
export interface DocumentedLoss {
  readonly gateway: number;
  readonly from: number;
  readonly to: number;
  readonly cutAt: number;
}

/** What was asked of the platform, and what it answered. */
export class Ledger {
  readonly windows: FaultWindow[] = [];
  readonly codes: TrackedCode[] = [];
  readonly creations: Creation[] = [];
  readonly scans: AskedScan[] = [];
  readonly findings: Finding[] = [];
  readonly longWaits: LongWait[] = [];
  /** When processes of gateways ended, or were stopped for so long that they may have been ended. */
  readonly gatewayEnds: { readonly gateway: number; readonly at: number }[] = [];
  /** When carriers of gateways were stopped or ended, and when they went on. */
  readonly carrierStops: { readonly gateway: number; readonly from: number; to: number }[] = [];
  /**
   * Scans that a gateway answered in these times, as its clients saw it, may be lost, as the documentation says. `cutAt`:
   * when the gateway answered no more of them.
   */
  readonly documentedLosses: DocumentedLoss[] = [];

  /** From now on, everything falls into a window of this name. */
  open(fault: string): FaultWindow {
    const opened: FaultWindow = {
      fault,
      startedAt: Date.now(),
      operations: 0,
      unanswered: 0,
      unavailable: 0,
      longestMs: 0,
      recoveredMs: undefined,
    };
    this.windows.push(opened);
    return opened;
  }

  /** Counts a request that has ended. */
  count({ status, startedAt, endedAt, error }: Asked, what: string): void {
    const window = this.windows.at(-1);
    if (!window) return;
    window.operations++;
    if (status === undefined) window.unanswered++;
    if (status === 503) window.unavailable++;
    window.longestMs = Math.max(window.longestMs, endedAt - startedAt);
    if (endedAt - startedAt > LONG_MS) {
      this.longWaits.push({ what: `${what}: ${status ?? error}`, startedAt, endedAt });
    }
    if (status === 500) this.find('wrong', endedAt, `${what}: 500`);
    if (error === 'hung') this.find('wrong', endedAt, `${what}: no answer within a minute`);
  }

  find(kind: Finding['kind'], at: number, what: string, ageMs?: number): void {
    this.findings.push({ kind, at, what, ...(ageMs !== undefined && { ageMs }) });
  }

  /** The window that a time falls into. */
  windowAt(time: number): FaultWindow | undefined {
    return this.windows.findLast(({ startedAt }) => startedAt <= time);
  }
}

/** Where a change lets a code lead. */
export function targetOf(key: string, number: number): string {
  return `https://example.com/${key}/${number}`;
}

/** The number of the change that made a target; undefined for any other text. */
export function numberIn(key: string, target: string | undefined): number | undefined {
  const start = `https://example.com/${key}/`;
  return target?.startsWith(start) ? Number(target.slice(start.length)) : undefined;
}
