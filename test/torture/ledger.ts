import type { RequestResult } from './http.ts';

/** The time from the injection of a fault until the next injection. */
export interface FaultWindow {
  readonly fault: string;
  readonly startedAt: number;
  operations: number;
  /** Requests without a complete response, and responses with 503. */
  unanswered: number;
  unavailable: number;
  /** The longest that a client waited for a response or a failure, in ms. */
  longestMs: number;
  /** The time until everything worked again after the fault was reverted, in ms; undefined if it never did. */
  recoveredMs: number | undefined;
}

/** A change that a client requested of its own code, which no other client changes. */
export interface Change {
  /** Ascending for each code; the target ends with it. */
  readonly number: number;
  readonly kind: 'create' | 'update' | 'delete';
  readonly paused: boolean;
  /**
   * Refused: it certainly did not happen. Unknown: there was no response, or one that says that the outcome is unknown.
   */
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

/** A creation of a code or a batch with a unique name. */
export interface Creation {
  readonly account: TortureAccount;
  readonly name: string;
  /** 1 for a code. */
  readonly rows: number;
  readonly kind: 'code' | 'batch';
  outcome: Change['outcome'];
  endedAt: number;
  /** The id of the code or the batch. */
  id?: string;
}

export interface SentScan {
  /** The host of the scan's referrer, which identifies its row. */
  readonly token: string;
  readonly code: TrackedCode;
  /** The gateway's index. */
  readonly gateway: number;
  readonly endedAt: number;
  /** Whether a redirect or the page of a paused code was received, so that the scan must be counted. */
  readonly answered: boolean;
}

/** A failure of an operation, and when it happened. */
export interface Finding {
  readonly kind: 'lost' | 'duplicated' | 'undone' | 'wrong' | 'documented';
  readonly at: number;
  readonly what: string;
  /** For a documented loss: the scan's age at that time, in ms. */
  readonly ageMs?: number;
}

/** A request whose client waited for more than `LONG_MS` for a response or a failure. */
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

/** All requests to the platform and their results. */
export class Ledger {
  readonly windows: FaultWindow[] = [];
  readonly codes: TrackedCode[] = [];
  readonly creations: Creation[] = [];
  readonly scans: SentScan[] = [];
  readonly findings: Finding[] = [];
  readonly longWaits: LongWait[] = [];
  /** When processes of gateways exited, or were stopped for so long that they may have been killed. */
  readonly gatewayEnds: { readonly gateway: number; readonly at: number }[] = [];
  /** When carriers of gateways were stopped or killed, and when they resumed. */
  readonly carrierStops: { readonly gateway: number; readonly from: number; to: number }[] = [];
  /**
   * Scans whose response clients got in these times may be lost, as the documentation says. `cutAt`: when the gateway
   * stopped answering them.
   */
  readonly documentedLosses: DocumentedLoss[] = [];

  /** Starts a window, to which everything from now on belongs. */
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
  count({ status, startedAt, endedAt, error }: RequestResult, what: string): void {
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

  /** The window that a time belongs to. */
  windowAt(time: number): FaultWindow | undefined {
    return this.windows.findLast(({ startedAt }) => startedAt <= time);
  }
}

/** The target that a change sets. */
export function targetOf(key: string, number: number): string {
  return `https://example.com/${key}/${number}`;
}

/** The number of the change that set a target; undefined for any other text. */
export function numberIn(key: string, target: string | undefined): number | undefined {
  const start = `https://example.com/${key}/`;
  return target?.startsWith(start) ? Number(target.slice(start.length)) : undefined;
}
