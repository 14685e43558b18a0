import { createClient } from '@connectrpc/connect';
import { createConnectQueryKey } from '@connectrpc/connect-query';
import { type Code, CodesService } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
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
  /** `tags`: all of the code's, by name. */
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
        () => client.updateCode({ id: code.id, tags: [...tags], updateMask: { paths: ['tags'] } }),
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

/** Shows a change at once, before the core has made it; a failure reads the code again. */
function show(code: Code): void {
  const schema = CodesService.method.getCode;
  const queryKey = createConnectQueryKey({ schema, input: { id: code.id }, cardinality: 'finite' });
  queryClient.setQueryData(queryKey, (before) => before && { ...before, code });
}
