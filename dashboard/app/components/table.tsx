// biome-ignore-all lint/a11y/noRedundantRoles: WebKit drops the roles of table elements that are displayed as blocks.
// biome-ignore-all lint/a11y/useSemanticElements: as above.
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
  /** Has buttons, whose names say enough: on phones they have no title. */
  readonly isActions?: boolean | undefined;
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
    <table role="table" className={styles.table}>
      <caption className="visually-hidden">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(({ id, title, isFigure }) => (
            <th key={id} role="columnheader" scope="col" className={isFigure ? 'figures' : ''}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} role="row">
            {columns.map(({ id, title, cell, isFigure, isRowHeader, isActions }) =>
              isRowHeader ? (
                <th key={id} role="rowheader" scope="row">
                  {cell(row)}
                </th>
              ) : (
                <td key={id} role="cell" className={isFigure ? 'figures' : ''} data-title={isActions ? '' : title}>
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
