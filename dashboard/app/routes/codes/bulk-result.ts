import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';

/** The most changed codes of which the state before is kept in memory, to undo the change. */
const MAX_UNDONE = 50_000;

interface BulkFailure {
  readonly code: Code;
  /** A sentence; empty if the code does not exist any more. */
  readonly message: string;
}

export interface BulkResult {
  /** The changed codes, as they were before; empty if they are too many to undo. */
  readonly before: readonly Code[];
  /**
   * Codes that may have been changed, or may still be, as they were before: the core has not yet said what became of
   * them.
   */
  readonly uncertain: readonly Code[];
  /** How many of `uncertain` a change of targets in the background has not come to yet. */
  readonly pending: number;
  /** `change_…`: the change of targets in the background; undefined for other changes, and if no answer told it. */
  readonly targetChange: string | undefined;
  readonly changed: number;
  readonly unchanged: number;
  /** Codes without a target, which a change of targets leaves as they are. */
  readonly withoutTarget: number;
  readonly failures: readonly BulkFailure[];
  /** What broke the change off; undefined if nothing did, or if it was stopped. */
  readonly error: unknown;
}

/** Whether codes could not be changed, or something broke the change off. */
export function hasFailed({ failures, error }: BulkResult): boolean {
  return failures.length > 0 || error !== undefined;
}

/** Whether there is something to take back, and the state before of all of it is known. */
export function isUndoable({ before, uncertain, changed }: BulkResult): boolean {
  return before.length === changed && changed + uncertain.length > 0;
}

/** Counts what becomes of the codes of a change. */
export class Tally {
  private readonly before: Code[] = [];
  private uncertain: readonly Code[] = [];
  private pending = 0;
  private targetChange: string | undefined;
  private readonly failures: BulkFailure[] = [];
  private changed = 0;
  private unchanged = 0;
  private withoutTarget = 0;
  private error: unknown;

  didChange(code: Code): void {
    this.changed += 1;
    if (this.before.length <= MAX_UNDONE) this.before.push(code);
  }

  mayHaveChanged(codes: readonly Code[]): void {
    this.uncertain = codes;
  }

  arePending(pending: readonly Code[]): void {
    this.uncertain = pending;
    this.pending = pending.length;
  }

  started(targetChange: string): void {
    this.targetChange = targetChange;
  }

  wasUnchanged(): void {
    this.unchanged += 1;
  }

  hadNoTarget(count: number): void {
    this.withoutTarget += count;
  }

  failed(code: Code, message: string): void {
    this.failures.push({ code, message });
  }

  broke(error: unknown): void {
    this.error ??= error;
  }

  result(): BulkResult {
    const { before, uncertain, pending, targetChange, changed, unchanged, withoutTarget, failures, error } = this;
    const undoable = before.length > MAX_UNDONE ? [] : before;
    return { before: undoable, uncertain, pending, targetChange, changed, unchanged, withoutTarget, failures, error };
  }
}
