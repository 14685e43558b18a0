import { createClient } from '@connectrpc/connect';
import { createConnectQueryKey } from '@connectrpc/connect-query';
import { type Code, CodesService, UpdateOutcome } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { showToast } from '../components/toasts.tsx';
import { useMessages } from '../messages/index.ts';
import { refreshCodes } from './code-lists.ts';
import { isolated, nameOfCode } from './code-names.ts';
import { useErrorText } from './error-text.ts';
import { queryClient } from './queries.ts';
import { transport } from './transport.ts';

/** What is done with one code. Each tells what it did, or why not, and offers to take it back. */
export interface CodeActions {
  setPaused(code: Code, paused: boolean): Promise<void>;
  rename(code: Code, name: string): Promise<void>;
  /** `folder`: an id or a new name; undefined takes the code out of its folder. */
  file(code: Code, folder: string | undefined, name: string): Promise<void>;
  /** `tags`: all that the code is to have, by name, of those that are shown. */
  tag(code: Code, tags: readonly string[]): Promise<void>;
  remove(code: Code): Promise<void>;
  restore(code: Code): Promise<void>;
}

const client = createClient(CodesService, transport);

export function useCodeActions(): CodeActions {
  const { codes } = useMessages();
  const errorText = useErrorText();
  const run = async (call: () => Promise<unknown>, text: string, undo: () => Promise<void>) => {
    try {
      await call();
      showToast(text, { undo: () => void undo() });
    } catch (error) {
      showToast(errorText(error), { kind: 'failed' });
    } finally {
      await refreshCodes();
    }
  };
  const actions: CodeActions = {
    setPaused: (code, paused) => {
      show({ ...code, paused });
      return run(
        () => client.updateCode({ id: code.id, paused, updateMask: { paths: ['paused'] } }),
        (paused ? codes.done.paused : codes.done.resumed)(isolated(nameOfCode(code))),
        () => actions.setPaused(code, !paused),
      );
    },
    rename: (code, name) => {
      show({ ...code, name });
      return run(
        () => client.updateCode({ id: code.id, name, updateMask: { paths: ['name'] } }),
        name === '' ? codes.done.unnamed : codes.done.renamed(name),
        () => actions.rename({ ...code, name }, code.name ?? ''),
      );
    },
    file: (code, folder, name) =>
      run(
        () =>
          client.updateCode({
            id: code.id,
            updateMask: { paths: ['folder'] },
            ...(folder !== undefined && { folder }),
          }),
        folder === undefined
          ? codes.done.unfiled(isolated(nameOfCode(code)))
          : codes.done.filed(isolated(nameOfCode(code)), name),
        () => actions.file({ ...code, folder: undefined }, code.folder?.id, code.folder?.name ?? ''),
      ),
    tag: (code, tags) => {
      show({ ...code, tags: [...tags] });
      return run(
        () => changeTags(code, tags, codes.bulk.notFound),
        codes.done.tagged(isolated(nameOfCode(code))),
        () => actions.tag({ ...code, tags: [...tags] }, code.tags),
      );
    },
    remove: (code) =>
      run(
        () => client.deleteCode({ id: code.id }),
        codes.done.deleted(isolated(nameOfCode(code))),
        () => actions.restore(code),
      ),
    restore: (code) =>
      run(
        () => client.restoreCode({ id: code.id }),
        codes.done.restored(isolated(nameOfCode(code))),
        () => actions.remove(code),
      ),
  };
  return actions;
}

/** Adds and removes the tags by which the lists differ: what other people have added or removed meanwhile stays so. */
async function changeTags({ id, tags: before }: Code, tags: readonly string[], notFound: string): Promise<void> {
  const addTags = tags.filter((tag) => !before.includes(tag));
  const removeTags = before.filter((tag) => !tags.includes(tag));
  const { results } = await client.updateCodes({ ids: [id], addTags, removeTags });
  const { outcome, message } = results[0] ?? {};
  if (outcome !== UpdateOutcome.CHANGED && outcome !== UpdateOutcome.UNCHANGED) throw new Error(message || notFound);
}

/** Shows a change at once, before the core has made it; a failure reads the code again. */
function show(code: Code): void {
  const schema = CodesService.method.getCode;
  const queryKey = createConnectQueryKey({ schema, input: { id: code.id }, cardinality: 'finite' });
  queryClient.setQueryData(queryKey, (before) => before && { ...before, code });
}
