import type { Queryable } from '../../common/postgres/sql.ts';
import type { LabelKind } from './label-kinds.ts';

/**
 * Updates the codes of a label: renaming, merging or deleting a label changes every code that has it. The codes module
 * imports this one and not the reverse, so its functions are passed in. Ids are UUIDs; the caller must hold locks on
 * the labels.
 */
export interface LabelledCodes {
  /** Increments the version of the label's codes and schedules their `qr.updated` events. */
  changed(tx: Queryable, accountId: string, kind: LabelKind['name'], label: string): Promise<void>;
  /** Moves the codes of a folder to another one, or out of any folder (null), and does the same for them. */
  moveToFolder(tx: Queryable, accountId: string, from: string, to: string | null): Promise<void>;
}
