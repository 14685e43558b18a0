import type { Queryable } from '../../common/postgres/sql.ts';
import type { Kind } from './kinds.ts';

/**
 * The codes of labels: a label that is renamed, merged or deleted changes each code that carries it. Codes depend on labels and
 * not the reverse, so the functions are passed in. Ids are UUIDs; the caller holds locks on the labels.
 */
export interface LabelledCodes {
  /** Counts the change of a label as a change of its codes, and has them announced. */
  changed(tx: Queryable, accountId: string, kind: Kind['name'], label: string): Promise<void>;
  /** Moves the codes of a folder to another one, or to none, and does the same. */
  moveToFolder(tx: Queryable, accountId: string, from: string, to: string | null): Promise<void>;
}
