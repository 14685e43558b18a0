import type { MessageInitShape } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createConnectQueryKey } from '@connectrpc/connect-query';
import {
  type Code,
  CodesService,
  type UpdateCodesRequestSchema,
  UpdateOutcome,
} from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { showToast } from '../components/toasts.tsx';
import { useMessages } from '../messages/index.ts';
import { refreshCodes } from './code-lists.ts';
import { isolated, nameOfCode } from './code-names.ts';
import { useErrorText } from './error-text.ts';
import { queryClient } from './queries.ts';
import { transport } from './transport.ts';

/**
 * What is done with one code. Each tells what it did, or why not, and offers to take it back: that puts back what the change
 * replaced, unless another person has changed it since. Each resolves to whether it was done.
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
  /** Makes a change. `done` says what it did; undefined: another person has changed the same, so nothing was changed. */
  const run = async (call: () => Promise<Change | undefined>, code: Code, done: (changed: Code) => string) => {
    try {
      const change = await call();
      if (!change) showToast(codes.done.notUndone(isolated(nameOfCode(code))), { kind: 'failed' });
      else showToast(done(change.code ?? code), change.undo && { undo: () => void change.undo?.() });
      await refreshCodes();
      return change !== undefined;
    } catch (error) {
      showToast(errorText(error), { kind: 'failed' });
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
        if (expected !== undefined && valuesOf(before)[field] !== expected) return undefined;
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
    );
  const tag = (code: Code, add: readonly string[], remove: readonly string[]): Promise<boolean> =>
    run(
      async () => {
        const tags = (await client.getCode({ id: code.id })).code?.tags ?? code.tags;
        const added = add.filter((name) => !tags.includes(name));
        const removed = remove.filter((name) => tags.includes(name));
        const isChanged = await update(code, { addTags: [...add], removeTags: [...remove] });
        return { code, ...(isChanged && { undo: () => tag(code, removed, added) }) };
      },
      code,
      () => codes.done.tagged(isolated(nameOfCode(code))),
    );
  const setDeleted = (code: Code, deleted: boolean): Promise<boolean> =>
    run(
      async () => {
        const isChanged = await update(code, { deleted });
        return { code, ...(isChanged && { undo: () => setDeleted(code, !deleted) }) };
      },
      code,
      () => (deleted ? codes.done.deleted : codes.done.restored)(isolated(nameOfCode(code))),
    );
  /** Changes a code by a method that tells whether it did. */
  const update = async ({ id }: Code, changes: MessageInitShape<typeof UpdateCodesRequestSchema>): Promise<boolean> => {
    const { outcome, reason = '', message } = (await client.updateCodes({ ...changes, ids: [id] })).results[0] ?? {};
    if (outcome === UpdateOutcome.CHANGED || outcome === UpdateOutcome.UNCHANGED)
      return outcome === UpdateOutcome.CHANGED;
    throw new Error(codes.bulk.refusals[reason] || message || codes.bulk.notFound);
  };
  return {
    setPaused: (code, paused) => {
      show({ ...code, paused });
      return set(code, 'paused', paused, (changed) =>
        (changed.paused ? codes.done.paused : codes.done.resumed)(isolated(nameOfCode(changed))),
      );
    },
    rename: (code, name) => {
      show({ ...code, name });
      return set(code, 'name', name, (changed) =>
        changed.name ? codes.done.renamed(changed.name) : codes.done.unnamed,
      );
    },
    file: (code, folder) =>
      set(code, 'folder', folder, (changed) => {
        const name = isolated(nameOfCode(changed));
        return changed.folder ? codes.done.filed(name, changed.folder.name) : codes.done.unfiled(name);
      }),
    tag: (code, tags) => {
      show({ ...code, tags: [...tags] });
      // What other people have added or removed meanwhile stays so.
      const added = tags.filter((name) => !code.tags.includes(name));
      const removed = code.tags.filter((name) => !tags.includes(name));
      return tag(code, added, removed);
    },
    remove: (code) => setDeleted(code, true),
    restore: (code) => setDeleted(code, false),
  };
}

function valuesOf({ paused, name, folder }: Code): Values {
  return { paused, name: name ?? '', folder: folder?.id ?? '' };
}

/** Shows a change at once, before the core has made it; a failure reads the code again. */
function show(code: Code): void {
  const schema = CodesService.method.getCode;
  const queryKey = createConnectQueryKey({ schema, input: { id: code.id }, cardinality: 'finite' });
  queryClient.setQueryData(queryKey, (before) => before && { ...before, code });
}
