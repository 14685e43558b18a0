import { createClient } from '@connectrpc/connect';
import { type Code, CodesService, UpdateOutcome } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { TaxonomyService } from '../../../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { isResultUnknown } from '../../data/idempotency-key.ts';
import { readCodes } from '../../data/read-codes.ts';
import { transport } from '../../data/transport.ts';

/** A folder or tag. */
export interface Label {
  readonly id: string;
  readonly name: string;
  readonly codeCount: bigint;
}

export type LabelKind = 'folder' | 'tag';

/** The most codes whose folder or tag is put back after a deletion: as many as one call of UpdateCodes takes. */
export const MAX_UNDONE = 1_000;

/** Codes per call: the most that the core returns. */
const PAGE = 100;

const taxonomy = createClient(TaxonomyService, transport);
const codes = createClient(CodesService, transport);

export function rename(kind: LabelKind, id: string, name: string): Promise<unknown> {
  return kind === 'folder' ? taxonomy.renameFolder({ id, name }) : taxonomy.renameTag({ id, name });
}

/** Gives a folder or tag its name back. Returns false, and changes nothing, if it is not called `from` any more. */
export async function undoRename(kind: LabelKind, id: string, from: string, name: string): Promise<boolean> {
  const now = (await listLabels(kind)).find((label) => label.id === id)?.name;
  if (now === from) await rename(kind, id, name);
  // Or it was given back by an earlier call, whose answer was lost.
  return now === from || now === name;
}

export function merge(kind: LabelKind, id: string, into: string): Promise<unknown> {
  return kind === 'folder' ? taxonomy.mergeFolders({ id, into }) : taxonomy.mergeTags({ id, into });
}

/**
 * Deletes a folder or tag. Resolves to what puts it back on its codes, and tells how many of them could not get it, as
 * those that were filed elsewhere meanwhile; undefined if it had too many.
 */
export async function remove(kind: LabelKind, label: Label): Promise<(() => Promise<number>) | undefined> {
  const ids = label.codeCount <= MAX_UNDONE ? await codesOf(kind, label.id) : [];
  try {
    if (kind === 'folder') await taxonomy.deleteFolder({ id: label.id });
    else await taxonomy.deleteTag({ id: label.id });
  } catch (error) {
    // If only the answer was lost, it can still be put back.
    if (!isResultUnknown(error) || (await listLabels(kind)).some(({ id }) => id === label.id)) throw error;
  }
  if (ids.length === 0 || ids.length > MAX_UNDONE) return undefined;
  const labelled = kind === 'folder' ? { folder: label.name } : { addTags: [label.name] };
  return async () => {
    const now = kind === 'folder' ? await readCodes(ids) : undefined;
    // In this folder are those that an earlier call has put back, whose answer was lost.
    const isFree = (code: Code | undefined) => code && (!code.folder || code.folder.name === label.name);
    const unfiled = now ? ids.filter((id) => isFree(now.get(id))) : ids;
    if (unfiled.length === 0) return ids.length;
    const { results } = await codes.updateCodes({ ids: unfiled, ...labelled });
    const done = results.filter(
      ({ outcome }) => outcome === UpdateOutcome.CHANGED || outcome === UpdateOutcome.UNCHANGED,
    );
    return ids.length - done.length;
  };
}

async function listLabels(kind: LabelKind): Promise<readonly Label[]> {
  return kind === 'folder' ? (await taxonomy.listFolders({})).folders : (await taxonomy.listTags({})).tags;
}

async function codesOf(kind: LabelKind, id: string): Promise<string[]> {
  const ids: string[] = [];
  let next: string | undefined;
  do {
    const filter = kind === 'folder' ? { folder: id } : { tags: [id] };
    const page = await codes.listCodes({ ...filter, limit: PAGE, ...(next !== undefined && { cursor: next }) });
    ids.push(...page.codes.map((code) => code.id));
    next = page.nextCursor;
  } while (next !== undefined && ids.length <= MAX_UNDONE);
  return ids;
}
