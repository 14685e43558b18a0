import { createClient } from '@connectrpc/connect';
import { foldedName } from '../../../../common/codes/folded-name.ts';
import { MAX_ROWS } from '../../../../common/contract/limits.ts';
import {
  type Code,
  CodesService,
  CodeType,
  type UpdatedCode,
  UpdateOutcome,
} from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { refreshCodes } from '../../data/code-lists.ts';
import { isResultUnknown } from '../../data/idempotency-key.ts';
import { readCodes } from '../../data/read-codes.ts';
import { refreshTarget } from '../../data/refresh-target.ts';
import { transport } from '../../data/transport.ts';
import { type BulkResult, Tally } from './bulk-result.ts';
import { isAborted, type RunOptions, retarget, retargetEnds } from './bulk-retarget.ts';

/** Codes per call of UpdateCodes: the most that it takes. */
const PER_CALL = 1_000;

/** The most targets that one change takes. */
export const MAX_TARGETS = MAX_ROWS;

export type BulkChange =
  | { readonly kind: 'folder' /** An id, a new name, or `none`. */; readonly folder: string }
  | { readonly kind: 'addTag' | 'removeTag'; readonly tag: string }
  | { readonly kind: 'pause' | 'resume' | 'delete' | 'restore' }
  | { readonly kind: 'retarget'; readonly url: string; readonly note: string };

const codesClient = createClient(CodesService, transport);

/**
 * Makes the change to all of `pages` of codes, and reports how many are done after each call. When `signal` aborts, it
 * stops after the present call. Then, and after an error, the result is of what has been done.
 */
export async function changeCodes(
  change: BulkChange,
  pages: AsyncIterable<readonly Code[]>,
  options: RunOptions,
): Promise<BulkResult> {
  const tally = new Tally();
  await run(change, pages, tally, options);
  return tally.result();
}

/**
 * Takes a change back: each code gets what it had before, unless another person has filed it elsewhere or changed its
 * target since. Those fail with `changedSince`.
 */
export async function undoChange(
  change: BulkChange,
  reached: Pick<BulkResult, 'before' | 'uncertain' | 'targetChange'>,
  changedSince: string,
): Promise<BulkResult> {
  const tally = new Tally();
  try {
    if (change.kind === 'retarget') await retargetEnds(reached.targetChange);
    const before = [...reached.before, ...(await changedOf(change, reached.uncertain, tally))];
    await takeBack(change, before, changedSince, tally);
  } catch (error) {
    tally.broke(error);
  }
  return tally.result();
}

/** Reads again what the change may have changed. */
export function refreshChanged({ kind }: { readonly kind: BulkChange['kind'] | 'export' }): Promise<void> {
  return kind === 'retarget' ? refreshTarget() : refreshCodes();
}

async function takeBack(
  change: BulkChange,
  before: readonly Code[],
  changedSince: string,
  tally: Tally,
): Promise<void> {
  const none = { onProgress: () => undefined, signal: new AbortController().signal };
  const set = (undoing: BulkChange, codes = before) => run(undoing, pagesOf(codes), tally, none);
  const opposite = { pause: 'resume', resume: 'pause', delete: 'restore', restore: 'delete' } as const;
  switch (change.kind) {
    case 'addTag':
      return set({ kind: 'removeTag', tag: change.tag });
    case 'removeTag':
      return set({ kind: 'addTag', tag: change.tag });
    case 'folder':
    case 'retarget': {
      const codes = await unchangedSince(change, before, changedSince, tally);
      if (change.kind === 'retarget') return retarget(codes, (code) => code.targetUrl ?? '', '', tally, none);
      const byFolder = Map.groupBy(codes, (code) => code.folder?.id ?? 'none');
      for (const [folder, each] of byFolder) await set({ kind: 'folder', folder }, each);
      return;
    }
    default:
      return set({ kind: opposite[change.kind] });
  }
}

/** The codes of `uncertain` that have changed since; the others count as unchanged. */
async function changedOf(change: BulkChange, uncertain: readonly Code[], tally: Tally): Promise<Code[]> {
  if (uncertain.length === 0) return [];
  const now = await readCodes(uncertain.map(({ id }) => id));
  return uncertain.filter((code) => {
    const found = now.get(code.id);
    // Deleted codes are not found.
    const isChanged = found ? found.version !== code.version : change.kind === 'delete';
    if (!isChanged) tally.wasUnchanged();
    return isChanged;
  });
}

/** The codes that still have what the change gave them, as they were before it; the others count as failed. */
async function unchangedSince(
  change: BulkChange & { kind: 'folder' | 'retarget' },
  before: readonly Code[],
  changedSince: string,
  tally: Tally,
): Promise<Code[]> {
  const now = await readCodes(before.map(({ id }) => id));
  const has = ({ folder, targetUrl }: Code) => {
    if (change.kind === 'retarget') return targetUrl === change.url;
    if (change.folder === 'none' || !folder) return !folder && change.folder === 'none';
    return folder.id === change.folder || foldedName(folder.name) === foldedName(change.folder);
  };
  const isBack = (found: Code, code: Code) =>
    change.kind === 'retarget' ? found.targetUrl === code.targetUrl : found.folder?.id === code.folder?.id;
  return before.filter((code) => {
    const found = now.get(code.id);
    if (found && has(found)) return true;
    // By an undo whose answer was lost.
    if (found && isBack(found, code)) tally.wasUnchanged();
    else tally.failed(code, found ? changedSince : '');
    return false;
  });
}

async function* pagesOf(codes: readonly Code[]): AsyncGenerator<readonly Code[]> {
  for (let at = 0; at < codes.length; at += PER_CALL) yield codes.slice(at, at + PER_CALL);
}

async function run(
  change: BulkChange,
  pages: AsyncIterable<readonly Code[]>,
  tally: Tally,
  { onProgress, signal }: RunOptions,
): Promise<void> {
  const all: Code[] = [];
  let waiting: Code[] = [];
  let withoutTarget = 0;
  let done = 0;
  const flush = async () => {
    if (waiting.length === 0) return;
    const codes = waiting;
    waiting = [];
    if (change.kind !== 'retarget') await update(change, codes, tally);
    done += codes.length;
    onProgress(done);
  };
  try {
    for await (const page of pages) {
      if (signal.aborted) break;
      if (change.kind === 'retarget') {
        const dynamic = page.filter(({ type }) => type === CodeType.DYNAMIC);
        withoutTarget += page.length - dynamic.length;
        all.push(...dynamic);
      }
      waiting.push(...page);
      if (change.kind !== 'retarget' && waiting.length + page.length > PER_CALL) await flush();
      if (all.length > MAX_TARGETS) throw new RangeError('too many targets');
    }
    if (!signal.aborted) await flush();
    if (change.kind === 'retarget' && !signal.aborted) {
      tally.hadNoTarget(withoutTarget);
      if (all.length > 0) onProgress(0);
      await retarget(all, () => change.url, change.note, tally, { onProgress, signal });
    }
  } catch (error) {
    if (!isAborted(signal, error)) tally.broke(error);
  }
}

async function update(change: Exclude<BulkChange, { kind: 'retarget' }>, codes: Code[], tally: Tally): Promise<void> {
  try {
    const { results } = await codesClient.updateCodes({ ids: codes.map(({ id }) => id), ...fieldsOf(change) });
    for (const [index, code] of codes.entries()) count(code, results[index], tally);
  } catch (error) {
    if (isResultUnknown(error)) tally.mayHaveChanged(codes);
    throw error;
  }
}

function fieldsOf(change: Exclude<BulkChange, { kind: 'retarget' }>) {
  switch (change.kind) {
    case 'folder':
      return { folder: change.folder };
    case 'addTag':
      return { addTags: [change.tag] };
    case 'removeTag':
      return { removeTags: [change.tag] };
    case 'pause':
    case 'resume':
      return { paused: change.kind === 'pause' };
    case 'delete':
    case 'restore':
      return { deleted: change.kind === 'delete' };
  }
}

function count(code: Code, result: UpdatedCode | undefined, tally: Tally): void {
  if (result?.outcome === UpdateOutcome.CHANGED) tally.didChange(code);
  else if (result?.outcome === UpdateOutcome.UNCHANGED) tally.wasUnchanged();
  else tally.failed(code, result?.message ?? '');
}
