import { useQuery } from '@connectrpc/connect-query';
import { AccountsService } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Button } from '../../components/button.tsx';
import { downloadCsv } from '../../components/charts/csv.ts';
import { Notice, Section } from '../../components/page.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './batches.module.css';
import type { CheckedRows, RowProblem } from './check-rows.ts';
import type { CsvFile } from './read-csv.ts';

/** The most problems that are listed; the file to download has all of them. */
const MAX_LISTED = 50;

/**
 * Whether the account has batches (also while that is not known); and, if known and limited, the rows of one and
 * further codes.
 */
export function usePlanLimits() {
  const { data } = useQuery(AccountsService.method.getAccount, {});
  const { batchLimit, codeLimit, codesUsed = 0n } = data?.usage ?? {};
  return {
    hasBatches: data?.features?.bulk !== false && batchLimit !== 0,
    batchLimit,
    codesLeft: codeLimit === undefined ? undefined : Math.max(0, Number(codeLimit - codesUsed)),
  };
}

/** What is wrong with the rows, before anything is created. */
export function CheckStep({ file, checked }: { readonly file: CsvFile; readonly checked: CheckedRows }) {
  const { batches } = useMessages();
  const format = useFormat();
  const { batchLimit, codesLeft } = usePlanLimits();
  const { good, bad, problems } = checked;
  const warned = problems.filter(({ isError }) => !isError);
  const count = format.number(good.length);
  return (
    <Section
      title={batches.checkTitle}
      actions={bad.length > 0 && <Button onPress={() => downloadBad(file, checked)}>{batches.downloadBad}</Button>}
    >
      {good.length === 0 ? (
        <Notice look="danger">{batches.noneGood}</Notice>
      ) : bad.length > 0 ? (
        <Notice look="warning">{batches.someBad(good.length, count, bad.length, format.number(bad.length))}</Notice>
      ) : (
        <Notice>{batches.allGood(good.length, count)}</Notice>
      )}
      {warned.length > 0 && <Notice>{batches.warnings(warned.length, format.number(warned.length))}</Notice>}
      {batchLimit !== undefined && good.length > batchLimit && (
        <Notice look="danger">{batches.overBatchLimit(count, format.number(batchLimit))}</Notice>
      )}
      {codesLeft !== undefined && good.length > codesLeft && (
        <Notice look="warning">{batches.overCodeLimit(codesLeft, format.number(codesLeft))}</Notice>
      )}
      {problems.length > 0 && <ProblemTable problems={problems} />}
    </Section>
  );
}

function ProblemTable({ problems }: { readonly problems: readonly RowProblem[] }) {
  const { batches } = useMessages();
  const format = useFormat();
  // Errors first: they leave rows out.
  const sorted = problems.toSorted((one, other) => Number(other.isError) - Number(one.isError) || one.row - other.row);
  const columns: Column<RowProblem>[] = [
    {
      id: 'row',
      title: batches.row,
      isRowHeader: true,
      cell: ({ number }) => format.number(number),
    },
    { id: 'problem', title: batches.problem, cell: ({ text }) => text },
    { id: 'value', title: batches.value, cell: ({ value }) => <span className={styles.url}>{value}</span> },
  ];
  return (
    <>
      {sorted.length > MAX_LISTED && (
        <p>{batches.firstProblems(format.number(MAX_LISTED), format.number(sorted.length))}</p>
      )}
      <Table
        caption={batches.problem}
        columns={columns}
        rows={sorted.slice(0, MAX_LISTED)}
        keyOf={({ row, text }) => `${row} ${text}`}
      />
    </>
  );
}

/** The rows with errors as they are in the file, with what is wrong in a further column. */
function downloadBad({ name, header, rows }: CsvFile, { bad, problems }: CheckedRows): void {
  const texts = Map.groupBy(problems, ({ row }) => row);
  const table = bad.map((row) => {
    const cells = header.map((_, column) => rows[row]?.[column] ?? '');
    return [...cells, (texts.get(row) ?? []).map(({ text }) => text).join(' ')];
  });
  downloadCsv(name.replace(/(\.csv)?$/i, '-errors.csv'), [[...header, 'error'], ...table]);
}
