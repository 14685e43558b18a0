import type { ReactNode } from 'react';
import styles from './table.module.css';

export interface Column<Row> {
  readonly id: string;
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers are right-aligned, with digits of one width. */
  readonly isFigure?: boolean | undefined;
  /** Heads its row: what the row is about. On phones it is the title of the entry. */
  readonly isRowHeader?: boolean | undefined;
}

interface TableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
}

/** A table of some rows, which becomes a list on phones. */
export function Table<Row>({ caption, columns, rows, keyOf }: TableProps<Row>) {
  return (
    <table className={styles.table}>
      <caption className="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ id, title, isFigure }) => (
            <th key={id} scope="col" className={isFigure ? 'figures' : ''}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map(({ id, title, cell, isFigure, isRowHeader }) =>
              isRowHeader ? (
                <th key={id} scope="row">
                  {cell(row)}
                </th>
              ) : (
                <td key={id} className={isFigure ? 'figures' : ''} data-title={title}>
                  {cell(row)}
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
