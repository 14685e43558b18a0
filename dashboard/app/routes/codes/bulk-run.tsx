import { useEffect, useRef, useState } from 'react';
import { ProgressBar } from 'react-aria-components';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { Button } from '../../components/button.tsx';
import { Actions, Dialog } from '../../components/dialog.tsx';
import { Notice } from '../../components/page.tsx';
import { type CodesFilter, refreshCodes } from '../../data/code-lists.ts';
import { reasonOf } from '../../data/error-reason.ts';
import { useErrorText } from '../../data/error-text.ts';
import { useFormat } from '../../data/format.ts';
import { isResultUnknown } from '../../data/idempotency-key.ts';
import { refreshTarget } from '../../data/refresh-target.ts';
import { showPending, showToast } from '../../data/toasts.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './bulk.module.css';
import { type BulkChange, changeCodes, MAX_TARGETS, undoChange } from './bulk-change.ts';
import { BulkReport } from './bulk-report.tsx';
import type { BulkResult } from './bulk-result.ts';
import { exportCodes, MAX_EXPORTED } from './export-codes.ts';
import { selectedCodes } from './selected-codes.ts';
import type { Selection } from './selection.ts';

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
  const { codes, common, rowSentence } = useMessages();
  const { bulk } = codes;
  const format = useFormat();
  const errorText = useErrorText();
  const [abort] = useState(() => new AbortController());
  const [total] = useState(count);
  const [done, setDone] = useState(0);
  const [result, setResult] = useState<BulkResult>();
  const [error, setError] = useState<string>();
  const isStarted = useRef(false);
  const refresh = job.kind === 'retarget' ? refreshTarget : refreshCodes;

  const undoable = ({ before, uncertain, changed }: BulkResult) =>
    job.kind !== 'export' && before.length === changed && changed + uncertain.length > 0;
  const undo = async (reached: Pick<BulkResult, 'before' | 'uncertain' | 'targetChange'>) => {
    if (job.kind === 'export') return;
    const { before, uncertain, targetChange } = reached;
    const hide = showPending(bulk.undoing);
    const undone = await undoChange(job, reached, bulk.changedSince);
    hide();
    const missed = before.length + uncertain.length - undone.changed - undone.unchanged;
    if (missed === 0) showToast(bulk.undone);
    else {
      const why =
        undone.error === undefined
          ? rowSentence(undone.failures[0]?.message ?? '') || bulk.notFound
          : errorText(undone.error);
      const settled = new Set([...undone.before, ...undone.failures.map(({ code }) => code)]);
      const rest = (codes: readonly Code[]) => codes.filter((code) => !settled.has(code));
      showToast(`${bulk.notUndone(missed, format.number(missed))} ${why}`, {
        kind: 'failed',
        ...(isResultUnknown(undone.error) && {
          retry: () => void undo({ before: rest(before), uncertain: rest(uncertain), targetChange }),
        }),
      });
    }
    await refresh();
  };
  const explanation = (failed: unknown) =>
    failed instanceof RangeError
      ? bulk.tooManyTargets(format.number(MAX_TARGETS))
      : reasonOf(failed) === 'FEATURE_NOT_IN_PLAN'
        ? bulk.notInPlan
        : errorText(failed);
  const finish = (reached: BulkResult, isShown: boolean) => {
    const { changed, unchanged, withoutTarget, failures, pending } = reached;
    const isComplete = failures.length === 0 && reached.error === undefined;
    if (isShown && !isComplete) {
      if (reached.error !== undefined) setError(explanation(reached.error));
      return setResult(reached);
    }
    const isNothing = changed + pending + withoutTarget === 0 && isComplete && !abort.signal.aborted;
    const text = [
      abort.signal.aborted ? bulk.stopped : '',
      changed > 0 ? bulk.done(changed, format.number(changed)) : '',
      pending > 0 ? bulk.pending(pending, format.number(pending)) : '',
      isNothing ? bulk.nothing : '',
      unchanged > 0 && !isNothing ? bulk.unchanged(unchanged, format.number(unchanged)) : '',
      withoutTarget > 0 ? bulk.withoutTarget(withoutTarget, format.number(withoutTarget)) : '',
      failures[0]
        ? `${bulk.failed(failures.length, format.number(failures.length))} ${rowSentence(failures[0].message) || bulk.notFound}`
        : '',
      reached.error === undefined ? '' : explanation(reached.error),
    ];
    showToast(text.filter(Boolean).join(' '), {
      kind: isComplete ? 'done' : 'failed',
      ...(undoable(reached) && { undo: () => void undo(reached) }),
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
        finish(await changeCodes(job, pages, { onProgress: setDone, signal: abort.signal }), isCurrent);
      } catch (failed) {
        if (abort.signal.aborted) return onDone();
        setError(explanation(failed));
      } finally {
        await refresh();
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
      {!isEnded && (
        <ProgressBar
          aria-label={bulk.titles[job.kind]}
          value={done}
          maxValue={Math.max(1, total ?? 0)}
          isIndeterminate={total === undefined}
        >
          {({ percentage }) => (
            <>
              <div className={styles.track}>
                <div className={styles.fill} style={{ width: `${percentage ?? 0}%` }} />
              </div>
              <p className={styles.progress}>
                {total === undefined
                  ? codes.count(done, format.number(done))
                  : bulk.progress(format.number(done), format.number(total))}
              </p>
            </>
          )}
        </ProgressBar>
      )}
      {error !== undefined && <Notice look="danger">{error}</Notice>}
      {result && <BulkReport result={result} />}
      <Actions>
        {result && undoable(result) && (
          <Button
            onPress={() => {
              onDone();
              void undo(result);
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
