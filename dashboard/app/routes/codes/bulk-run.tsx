import { useEffect, useRef, useState } from 'react';
import { Button } from '../../components/button.tsx';
import { Actions, Dialog } from '../../components/dialog.tsx';
import { Notice } from '../../components/page.tsx';
import type { CodesFilter } from '../../data/code-lists.ts';
import { useFormat } from '../../data/format.ts';
import { showToast } from '../../data/toasts.ts';
import { useMessages } from '../../messages/index.ts';
import { type BulkChange, changeCodes, refreshChanged } from './bulk-change.ts';
import { BulkProgress } from './bulk-progress.tsx';
import { BulkReport } from './bulk-report.tsx';
import { type BulkResult, hasFailed, isUndoable } from './bulk-result.ts';
import { failureText, resultText } from './bulk-texts.ts';
import { exportCodes, MAX_EXPORTED } from './export-codes.ts';
import { selectedCodes } from './selected-codes.ts';
import type { Selection } from './selection.ts';
import { useBulkUndo } from './use-bulk-undo.ts';

interface BulkRunProps {
  readonly job: BulkChange | { readonly kind: 'export' };
  readonly selection: Selection;
  readonly filter: CodesFilter;
  /** How many codes are selected; undefined if that is not known. */
  readonly count: number | undefined;
  /** `mayBeRepeated`: it broke off, so the selection is still of use. */
  readonly onDone: (mayBeRepeated?: boolean) => void;
}

/** Does something with the selected codes, shows how far it is, and what became of it. */
export function BulkRun({ job, selection, filter, count, onDone }: BulkRunProps) {
  const messages = useMessages();
  const { common } = messages;
  const { bulk } = messages.codes;
  const format = useFormat();
  const undo = useBulkUndo();
  const [abort] = useState(() => new AbortController());
  const [total] = useState(count);
  const [done, setDone] = useState(0);
  const [result, setResult] = useState<BulkResult>();
  const [error, setError] = useState<string>();
  const isStarted = useRef(false);
  const finish = (change: BulkChange, reached: BulkResult, isShown: boolean) => {
    if (isShown && hasFailed(reached)) {
      if (reached.error !== undefined) setError(failureText(reached.error, messages, format));
      return setResult(reached);
    }
    showToast(resultText(reached, abort.signal.aborted, messages, format), {
      kind: hasFailed(reached) ? 'failed' : 'done',
      ...(isUndoable(reached) && { undo: () => void undo(change, reached) }),
    });
    onDone();
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: it runs once; the job of a run never changes.
  useEffect(() => {
    // React's strict mode runs effects twice in development; the second run is the one that counts. Effects also run
    // again when a page that was hidden until the next sign-in appears; a job that has started is not repeated then.
    let isCurrent = true;
    const run = async () => {
      await Promise.resolve();
      if (!isCurrent || isStarted.current) return;
      isStarted.current = true;
      const pages = selectedCodes(selection, filter, abort.signal);
      try {
        if (job.kind === 'export') {
          if (await exportCodes(pages, { signal: abort.signal, onProgress: setDone })) onDone();
          else setError(bulk.tooManyExported(format.number(MAX_EXPORTED)));
          return;
        }
        finish(job, await changeCodes(job, pages, { onProgress: setDone, signal: abort.signal }), isCurrent);
      } catch (failed) {
        if (abort.signal.aborted) return onDone();
        setError(failureText(failed, messages, format));
      } finally {
        await refreshChanged(job);
      }
    };
    void run();
    return () => {
      isCurrent = false;
      // The page was left: what has been changed stays so, and a toast tells how much that is.
      if (isStarted.current) abort.abort();
    };
  }, []);

  const isEnded = result !== undefined || error !== undefined;
  const close = () => onDone(error !== undefined);
  return (
    <Dialog title={bulk.titles[job.kind]} isOpen onClose={() => (isEnded ? close() : abort.abort())} isAlert>
      {!isEnded && <BulkProgress label={bulk.titles[job.kind]} done={done} total={total} />}
      {error !== undefined && <Notice look="danger">{error}</Notice>}
      {result && <BulkReport result={result} />}
      <Actions>
        {result && job.kind !== 'export' && isUndoable(result) && (
          <Button
            onPress={() => {
              onDone();
              void undo(job, result);
            }}
          >
            {common.undo}
          </Button>
        )}
        {isEnded ? (
          <Button onPress={close}>{common.close}</Button>
        ) : (
          <Button onPress={() => abort.abort()}>{bulk.stop}</Button>
        )}
      </Actions>
    </Dialog>
  );
}
