import { ChevronDown, Download } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { type Batch, RowStatus } from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { ImageFormat } from '../../../../proto/gen/signpost/images/v1/images_pb.ts';
import { Button } from '../../components/button.tsx';
import { downloadCsv, downloadFile } from '../../components/charts/csv.ts';
import { passFocus } from '../../components/focus.ts';
import { Menu } from '../../components/menu.tsx';
import { useErrorText } from '../../data/error-text.ts';
import { useFormat } from '../../data/format.ts';
import { showToast } from '../../data/toasts.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './batches.module.css';
import { codeTable, failedTable, loadImages, loadRows } from './files.ts';

interface Running {
  readonly kind: 'packing' | 'listing';
  readonly done: number;
  readonly total: number;
}

/**
 * The files of a batch: its images, its codes, and the rows without codes. One is made at a time, and can be stopped.
 */
export function Downloads({ batch, title }: { readonly batch: Batch; readonly title: string }) {
  const { batches, common, rowSentence } = useMessages();
  const format = useFormat();
  const errorText = useErrorText();
  const [running, setRunning] = useState<Running>();
  const stop = useRef<AbortController>(undefined);
  useEffect(() => () => stop.current?.abort(), []);
  const opener = useRef<HTMLButtonElement>(null);
  const cancel = useRef<HTMLButtonElement>(null);
  const isRunning = running !== undefined;
  const wasRunning = useRef(isRunning);
  useEffect(() => {
    // The button that had the focus has given way to the other one, which may be gone again by the next frame.
    if (wasRunning.current !== isRunning) passFocus(() => cancel.current ?? opener.current);
    wasRunning.current = isRunning;
  }, [isRunning]);
  const { created = 0, failed = 0, skipped = 0 } = batch.counts ?? {};
  const name = title.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '') || batch.id;

  const run = async (
    kind: Running['kind'],
    total: number,
    work: (options: { signal: AbortSignal; onProgress: (done: number) => void }) => Promise<void>,
  ) => {
    const controller = new AbortController();
    stop.current = controller;
    setRunning({ kind, done: 0, total });
    try {
      await work({ signal: controller.signal, onProgress: (done) => setRunning({ kind, done, total }) });
    } catch (error) {
      if (!controller.signal.aborted) showToast(errorText(error), { kind: 'failed' });
    } finally {
      setRunning(undefined);
    }
  };
  const images = (extension: 'png' | 'svg', imageFormat: ImageFormat) =>
    run('packing', created, async (options) => {
      const zip = await loadImages(batch, imageFormat, options);
      downloadFile(`${name}-${extension}.zip`, 'application/zip', zip);
    });
  const codes = () =>
    run('listing', created, async (options) =>
      downloadCsv(`${name}.csv`, codeTable(await loadRows(batch, [RowStatus.CREATED], options))),
    );
  const failures = () =>
    run('listing', failed + skipped, async (options) => {
      const rows = await loadRows(batch, [RowStatus.FAILED, RowStatus.SKIPPED], options);
      downloadCsv(`${name}-failed.csv`, failedTable(rows, rowSentence));
    });

  if (running) {
    return (
      <span role="status" className={styles.running}>
        <span className="figures">
          {batches[running.kind](format.number(running.done), format.number(running.total))}
        </span>
        <Button ref={cancel} onPress={() => stop.current?.abort()}>
          {common.cancel}
        </Button>
      </span>
    );
  }
  return (
    <Menu
      label={batches.download}
      actions={[
        {
          id: 'png',
          label: batches.downloads.png,
          isDisabled: created === 0,
          onAction: () => void images('png', ImageFormat.PNG),
        },
        {
          id: 'svg',
          label: batches.downloads.svg,
          isDisabled: created === 0,
          onAction: () => void images('svg', ImageFormat.SVG),
        },
        { id: 'codes', label: batches.downloads.codes, isDisabled: created === 0, onAction: () => void codes() },
        {
          id: 'failed',
          label: batches.downloads.failed,
          isDisabled: failed + skipped === 0,
          onAction: () => void failures(),
        },
      ]}
    >
      <Button ref={opener} icon={Download} look="primary">
        {batches.download}
        <ChevronDown aria-hidden size={16} />
      </Button>
    </Menu>
  );
}
