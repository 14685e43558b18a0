import type { MessageInitShape } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createConnectQueryKey } from '@connectrpc/connect-query';
import {
  type Code,
  CodesService,
  type UpdateCodesRequestSchema,
  UpdateOutcome,
} from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { useMessages } from '../messages/index.ts';
import { refreshCodes } from './code-lists.ts';
import { isolated, nameOfCode } from './code-names.ts';
import { useErrorText } from './error-text.ts';
import { isResultUnknown } from './idempotency-key.ts';
import { queryClient } from './queries.ts';
import { showToast } from './toasts.ts';
import { transport } from './transport.ts';

/**
 * What is done with one code. Each tells what it did, or why not, and offers to take it back: that puts back what the
 * change replaced, unless another person has changed it since. Each resolves to whether it was done.
 */
export interface CodeActions {
  setPaused(code: Code, paused: boolean): Promise<boolean>;
  rename(code: Code, name: string): Promise<boolean>;
  /** `folder`: an id or a new name; empty takes the code out of its folder. */
  file(code: Code, folder: string): Promise<boolean>;
  /** `tags`: all that the code is to have, by name, of those that are shown. */
  tag(code: Code, tags: readonly string[]): Promise<boolean>;
  remove(code: Code): Promise<boolean>;
  restore(code: Code): Promise<boolean>;
}

/** What is changed as a whole: a folder by its id; empty for none, like a name. */
interface Values {
  readonly paused: boolean;
  readonly name: string;
  readonly folder: string;
}

/** A change that was made. */
interface Change {
  /** The code after it. */
  readonly code: Code | undefined;
  /** Takes it back; absent if nothing changed. */
  readonly undo?: (() => Promise<boolean>) | undefined;
}

const client = createClient(CodesService, transport);

export function useCodeActions(): CodeActions {
  const { codes } = useMessages();
  const errorText = useErrorText();
  /**
   * Makes a change; it is undefined if another person has changed the same, so that nothing was changed. `done` says
   * what it did. `retry`: makes an undo once more; what else failed is still on the page.
   */
  const run = async (
    call: () => Promise<Change | undefined>,
    code: Code,
    done: (changed: Code) => string,
    retry?: () => void,
  ) => {
    try {
      const change = await call();
      if (!change) showToast(codes.done.notUndone(isolated(nameOfCode(code))), { kind: 'failed' });
      else showToast(done(change.code ?? code), change.undo && { undo: () => void change.undo?.() });
      await refreshCodes();
      return change !== undefined;
    } catch (error) {
      showToast(errorText(error), { kind: 'failed', ...(isResultUnknown(error) && retry && { retry }) });
      // Not awaited, which takes long while Signpost is unavailable: what was typed can be sent again at once.
      void refreshCodes();
      return false;
    }
  };
  /** Sets one of the values. Undoing it sets the one before, expecting that the code still has the new one. */
  const set = <Field extends keyof Values>(
    code: Code,
    field: Field,
    value: Values[Field],
    done: (changed: Code) => string,
    expected?: Values[Field],
  ): Promise<boolean> =>
    run(
      async () => {
        const before = (await client.getCode({ id: code.id })).code ?? code;
        // An undo whose answer was lost has set the value already.
        if (expected !== undefined && ![expected, value].includes(valuesOf(before)[field])) return undefined;
        const { code: changed = before } = await client.updateCode({
          id: code.id,
          // Without a value, the mask takes a code out of its folder.
          ...(value !== '' && { [field]: value }),
          updateMask: { paths: [field] },
        });
        const was = valuesOf(before)[field];
        const is = valuesOf(changed)[field];
        return { code: changed, ...(was !== is && { undo: () => set(changed, field, was, done, is) }) };
      },
      code,
      done,
      expected === undefined ? undefined : () => void set(code, field, value, done, expected),
    );
  const tag = (code: Code, add: readonly string[], remove: readonly string[], isUndo = false): Promise<boolean> =>
    run(
      async () => {
        const tags = (await client.getCode({ id: code.id })).code?.tags ?? code.tags;
        const added = add.filter((name) => !tags.includes(name));
        const removed = remove.filter((name) => tags.includes(name));
        const isChanged = await update(code, { addTags: [...add], removeTags: [...remove] });
        return { code, ...(isChanged && { undo: () => tag(code, removed, added, true) }) };
      },
      code,
      () => codes.done.tagged(isolated(nameOfCode(code))),
      isUndo ? () => void tag(code, add, remove, true) : undefined,
    );
  const setDeleted = (code: Code, deleted: boolean, isUndo = false): Promise<boolean> =>
    run(
      async () => {
        const isChanged = await update(code, { deleted });
        return { code, ...(isChanged && { undo: () => setDeleted(code, !deleted, true) }) };
      },
      code,
      () => (deleted ? codes.done.deleted : codes.done.restored)(isolated(nameOfCode(code))),
      isUndo ? () => void setDeleted(code, deleted, true) : undefined,
    );
  /** Changes a code by a method that tells whether it did. */
  const update = async ({ id }: Code, changes: MessageInitShape<typeof UpdateCodesRequestSchema>): Promise<boolean> => {
    const { outcome, reason = '', message } = (await client.updateCodes({ ...changes, ids: [id] })).results[0] ?? {};
    if (outcome === UpdateOutcome.CHANGED || outcome === UpdateOutcome.UNCHANGED)
      return outcome === UpdateOutcome.CHANGED;
    throw new Error(codes.bulk.refusals[reason] || message || codes.bulk.notFound);
  };
  return {
    setPaused: (code, paused) =>
      atOnce(code, { paused }, () =>
        set(code, 'paused', paused, (changed) =>
          (changed.paused ? codes.done.paused : codes.done.resumed)(isolated(nameOfCode(changed))),
        ),
      ),
    rename: (code, name) =>
      atOnce(code, { name }, () =>
        set(code, 'name', name, (changed) => (changed.name ? codes.done.renamed(changed.name) : codes.done.unnamed)),
      ),
    file: (code, folder) =>
      set(code, 'folder', folder, (changed) => {
        const name = isolated(nameOfCode(changed));
        return changed.folder ? codes.done.filed(name, changed.folder.name) : codes.done.unfiled(name);
      }),
    tag: (code, tags) => {
      // What other people have added or removed meanwhile stays so.
      const added = tags.filter((name) => !code.tags.includes(name));
      const removed = code.tags.filter((name) => !tags.includes(name));
      return atOnce(code, { tags: [...tags] }, () => tag(code, added, removed));
    },
    remove: (code) => setDeleted(code, true),
    restore: (code) => setDeleted(code, false),
  };
}

function valuesOf({ paused, name, folder }: Code): Values {
  return { paused, name: name ?? '', folder: folder?.id ?? '' };
}

/**
 * Makes a change that is shown at once, before the core has made it; if it is not made, the code is shown as it was.
 */
async function atOnce(code: Code, changes: Partial<Code>, change: () => Promise<boolean>): Promise<boolean> {
  // What is being read may be older than the change.
  if (queryClient.getQueryData(keyOf(code))) await queryClient.cancelQueries({ queryKey: keyOf(code) });
  show({ ...code, ...changes });
  const isDone = await change();
  if (!isDone) show(code);
  return isDone;
}

function show(code: Code): void {
  queryClient.setQueryData(keyOf(code), (before) => before && { ...before, code });
}

/** The key of the query that reads a code. */
function keyOf({ id }: Code) {
  const schema = CodesService.method.getCode;
  return createConnectQueryKey({ schema, input: { id }, transport, cardinality: 'finite' });
}
