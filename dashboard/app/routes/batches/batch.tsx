import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { type Batch, BatchStatus, RowStatus } from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { Loading } from '../../components/loading.tsx';
import { Announced, Notice, Page, Section } from '../../components/page.tsx';
import { Segmented } from '../../components/segmented.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { useErrorText } from '../../data/error-text.ts';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import { BatchRows } from './batch-rows.tsx';
import styles from './batches.module.css';
import { BatchState, useBatchTitle } from './batches.tsx';
import { Downloads } from './downloads.tsx';
import { Progress } from './progress.tsx';
import { useWatchedBatch } from './use-watched-batch.ts';

/** One batch: its progress while it runs, its rows, and its files. */
export function BatchPage() {
  const { batchId } = useParams({ from: '/batches/$batchId' });
  const { shell, batches } = useMessages();
  const errorText = useErrorText();
  const titleOf = useBatchTitle();
  const { batch, error, isReconnecting } = useWatchedBatch(batchId);
  const title = batch ? titleOf(batch) : shell.nav.batches;
  return (
    <Page
      title={title}
      subtitle={
        batch && (
          <span className={styles.state}>
            <BatchState status={batch.status} />
            <RelativeTime instant={batch.completedAt ?? batch.createdAt} />
          </span>
        )
      }
      actions={batch && <Downloads batch={batch} title={title} />}
    >
      {error !== undefined && <Notice look="danger">{errorText(error)}</Notice>}
      <Announced>{isReconnecting && <Notice look="warning">{batches.reconnecting}</Notice>}</Announced>
      {batch ? <BatchContent batch={batch} /> : error === undefined && <Loading />}
    </Page>
  );
}

const FILTERS = {
  all: RowStatus.UNSPECIFIED,
  created: RowStatus.CREATED,
  pending: RowStatus.PENDING,
  failed: RowStatus.FAILED,
  skipped: RowStatus.SKIPPED,
} as const;
type Filter = keyof typeof FILTERS;

function BatchContent({ batch }: { readonly batch: Batch }) {
  const { batches } = useMessages();
  const format = useFormat();
  const [filter, setFilter] = useState<Filter>('all');
  const { total = 0, created = 0, pending = 0, failed = 0, skipped = 0 } = batch.counts ?? {};
  const counts = { all: total, created, pending, failed, skipped };
  const ids: Filter[] = ['all', 'created', 'pending', 'failed', 'skipped'];
  const shown = ids.filter((id) => id === 'all' || id === filter || counts[id] > 0);
  return (
    <>
      {batch.status === BatchStatus.PROCESSING && <Progress counts={batch.counts} />}
      <Section
        title={batches.rowsTitle}
        actions={
          <Segmented
            label={batches.filter}
            options={shown.map((id) => ({
              id,
              label: batches.filterText(batches.filters[id], format.number(counts[id])),
            }))}
            value={filter}
            onChange={setFilter}
          />
        }
      >
        <BatchRows batch={batch} status={FILTERS[filter]} />
      </Section>
    </>
  );
}
