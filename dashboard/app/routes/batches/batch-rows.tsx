import { useInfiniteQuery } from '@connectrpc/connect-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import {
  type Batch,
  BatchesService,
  type BatchRow,
  BatchStatus,
  RowStatus,
} from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodeImage } from '../../components/code-image.tsx';
import { LoadMore } from '../../components/load-more.tsx';
import { LoadFailed } from '../../components/loaded.tsx';
import { Loading } from '../../components/loading.tsx';
import { Status } from '../../components/page.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './batches.module.css';

/** Rows that are loaded at a time. */
const PAGE_ROWS = 100;

/** The rows of a batch in print order, with their codes. */
export function BatchRows({ batch, status }: { readonly batch: Batch; readonly status: RowStatus }) {
  const { batches } = useMessages();
  const query = useInfiniteQuery(
    BatchesService.method.getBatch,
    { id: batch.id, limit: PAGE_ROWS, offset: 0, status },
    {
      pageParamKey: 'offset',
      getNextPageParam: ({ offset, rows, total }) => (offset + rows.length < total ? offset + rows.length : undefined),
    },
  );
  // Rows become final as the batch proceeds; a completed batch does not change.
  const { refetch } = query;
  const done = (batch.counts?.total ?? 0) - (batch.counts?.pending ?? 0);
  const rows = query.data?.pages.flatMap((page) => page.rows) ?? [];
  // Of a completed batch no row is waiting: these were read before it was.
  const isOutdated = batch.status === BatchStatus.COMPLETED && rows.some((row) => row.status === RowStatus.PENDING);
  const outdated = isOutdated ? status : undefined;
  const lastOutdated = useRef(outdated);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the rows have changed when more of them are done.
  useEffect(() => {
    const wasJustRead = outdated === undefined && lastOutdated.current === status;
    lastOutdated.current = outdated;
    if (!wasJustRead) void refetch();
  }, [refetch, done, batch.status, outdated]);
  if (query.isError && rows.length === 0) {
    return <LoadFailed error={query.error} retry={() => void refetch()} />;
  }
  if (query.isPending) return <Loading />;
  if (rows.length === 0) return <p>{batches.noRows}</p>;
  return (
    <>
      <RowTable batch={batch} rows={rows} />
      <LoadMore query={query} />
    </>
  );
}

function RowTable({ batch, rows }: { readonly batch: Batch; readonly rows: readonly BatchRow[] }) {
  const { batches, common } = useMessages();
  const format = useFormat();
  const has = (field: 'name' | 'externalRef') => rows.some((row) => row[field]);
  const { foregroundColor, backgroundColor } = batch.design ?? {};
  const columns: (Column<BatchRow> | false)[] = [
    {
      id: 'code',
      title: batches.code,
      isRowHeader: true,
      cell: ({ index, codeId, shortCode, scanUrl }) => (
        <span className={styles.code}>
          {scanUrl === undefined ? (
            <span className={styles.noImage} />
          ) : (
            <CodeImage text={scanUrl} label="" size={48} foreground={foregroundColor} background={backgroundColor} />
          )}
          <span className={styles.codeText}>
            {codeId === undefined ? (
              '–'
            ) : (
              <Link to="/codes/$codeId" params={{ codeId }}>
                <code>{shortCode}</code>
              </Link>
            )}
            <span className={styles.position}>
              {batches.row} {format.number(index + 1)}
            </span>
          </span>
        </span>
      ),
    },
    has('name') && { id: 'name', title: common.name, cell: ({ name }) => name ?? '' },
    { id: 'target', title: batches.target, cell: ({ targetUrl }) => <span className={styles.url}>{targetUrl}</span> },
    has('externalRef') && { id: 'ref', title: batches.externalRef, cell: ({ externalRef }) => externalRef ?? '' },
    {
      id: 'result',
      title: batches.result,
      cell: (row) => <Result row={row} />,
    },
  ];
  return (
    <Table
      caption={batches.rowsTitle}
      columns={columns.filter((column) => column !== false)}
      rows={rows}
      keyOf={({ index }) => String(index)}
    />
  );
}

function Result({ row }: { readonly row: BatchRow }) {
  const { batches, rowSentence } = useMessages();
  const { status, reason, warnings } = row;
  if (status === RowStatus.CREATED) {
    return warnings.length === 0 ? (
      <Status look="good">{batches.rowStatuses.created}</Status>
    ) : (
      <span>
        <Status look="warning">{batches.rowStatuses.created}</Status> {warnings.map(rowSentence).join(' ')}
      </span>
    );
  }
  if (status === RowStatus.PENDING) return <Status>{batches.rowStatuses.pending}</Status>;
  const name = status === RowStatus.SKIPPED ? 'skipped' : 'failed';
  return (
    <span>
      <Status look={name === 'failed' ? 'danger' : 'warning'}>{batches.rowStatuses[name]}</Status>{' '}
      {reason && rowSentence(reason)}
    </span>
  );
}
