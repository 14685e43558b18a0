import { useInfiniteQuery } from '@connectrpc/connect-query';
import { Link } from '@tanstack/react-router';
import { Layers, Plus } from 'lucide-react';
import { type Batch, BatchesService, BatchStatus } from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { buttonLink } from '../../components/button.tsx';
import { LoadMore } from '../../components/load-more.tsx';
import { LoadFailed } from '../../components/loaded.tsx';
import { Loading } from '../../components/loading.tsx';
import { Empty, Notice, Page, Status } from '../../components/page.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { reasonOf } from '../../data/error-reason.ts';
import { useFormat } from '../../data/format.ts';
import { recoveryInterval } from '../../data/queries.ts';
import { useMay } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import { Progress } from './progress.tsx';

/** How often the list is loaded again while a batch is in progress, in ms. */
const REFRESH_MS = 3_000;

/** Batches that are loaded at a time. */
const PAGE_BATCHES = 50;

/** All batches, newest first. */
export function Batches() {
  const { batches, shell } = useMessages();
  const mayCreate = useMay('editor');
  const query = useInfiniteQuery(
    BatchesService.method.listBatches,
    { limit: PAGE_BATCHES, offset: 0 },
    {
      pageParamKey: 'offset',
      getNextPageParam: ({ offset, batches, total }) =>
        offset + batches.length < Number(total) && batches.length > 0 ? offset + batches.length : undefined,
      refetchInterval: (query) =>
        query.state.data?.pages.some((page) => page.batches.some(({ status }) => status === BatchStatus.PROCESSING))
          ? REFRESH_MS
          : recoveryInterval(query),
    },
  );
  const rows = query.data?.pages.flatMap((page) => page.batches) ?? [];
  const create = mayCreate && (
    <Link to="/batches/new" className={buttonLink.primary}>
      <Plus aria-hidden size={16} />
      {batches.new}
    </Link>
  );
  return (
    <Page title={shell.nav.batches} actions={rows.length > 0 && create}>
      {reasonOf(query.error) === 'FEATURE_NOT_IN_PLAN' ? (
        <Notice>{batches.notInPlan}</Notice>
      ) : query.isError && rows.length === 0 ? (
        <LoadFailed error={query.error} retry={() => void query.refetch()} />
      ) : query.isPending ? (
        <Loading />
      ) : rows.length === 0 ? (
        <Empty icon={Layers} title={batches.emptyTitle} action={create}>
          {batches.emptyText}
        </Empty>
      ) : (
        <BatchTable rows={rows} />
      )}
      <LoadMore query={query} />
    </Page>
  );
}

function BatchTable({ rows }: { readonly rows: readonly Batch[] }) {
  const { batches, common } = useMessages();
  const format = useFormat();
  const titleOf = useBatchTitle();
  const columns: Column<Batch>[] = [
    {
      id: 'name',
      title: common.name,
      isRowHeader: true,
      cell: (batch) => (
        <Link to="/batches/$batchId" params={{ batchId: batch.id }}>
          {titleOf(batch)}
        </Link>
      ),
    },
    { id: 'status', title: common.status, cell: ({ status }) => <BatchState status={status} /> },
    { id: 'progress', title: batches.progress, cell: ({ counts }) => <Progress counts={counts} /> },
    { id: 'codes', title: batches.codes, isFigure: true, cell: ({ counts }) => format.number(counts?.created ?? 0) },
    { id: 'failed', title: batches.failed, isFigure: true, cell: ({ counts }) => format.number(counts?.failed ?? 0) },
    {
      id: 'skipped',
      title: batches.skipped,
      isFigure: true,
      cell: ({ counts }) => format.number(counts?.skipped ?? 0),
    },
    { id: 'created', title: common.created, cell: ({ createdAt }) => <RelativeTime instant={createdAt} /> },
  ];
  return <Table caption={batches.list} columns={columns} rows={rows} keyOf={({ id }) => id} />;
}

export function BatchState({ status }: { readonly status: BatchStatus }) {
  const { batches } = useMessages();
  const isDone = status === BatchStatus.COMPLETED;
  return <Status look={isDone ? 'good' : 'warning'}>{batches.statuses[isDone ? 'completed' : 'processing']}</Status>;
}

/** A batch's name, or the day on which it was created. */
export function useBatchTitle(): (batch: Batch) => string {
  const { batches } = useMessages();
  const format = useFormat();
  return ({ name, id, createdAt }) => name || (createdAt ? batches.unnamed(format.date(createdAt)) : id);
}
