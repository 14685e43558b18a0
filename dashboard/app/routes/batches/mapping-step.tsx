import { Notice, Section } from '../../components/page.tsx';
import { Select } from '../../components/select.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { useMessages } from '../../messages/index.ts';
import styles from './batches.module.css';
import { FIELDS, type FieldName, type Mapping } from './check-rows.ts';
import type { CsvFile } from './read-csv.ts';

/** Rows that are shown of every column. */
const SAMPLE_ROWS = 3;

interface MappingStepProps {
  readonly file: CsvFile;
  readonly mapping: Mapping;
  readonly onChange: (mapping: Mapping) => void;
}

/** Says what the columns are; guessed by their names. */
export function MappingStep({ file, mapping, onChange }: MappingStepProps) {
  const { batches } = useMessages();
  const uses = [
    { id: '', label: batches.notUsed },
    ...FIELDS.map((field) => ({ id: field, label: batches.fields[field] })),
  ] as const;
  const nameOf = (column: number) => file.header[column] || batches.unnamedColumn(column + 1);
  const purposeOf = (column: number): FieldName | '' => FIELDS.find((field) => mapping[field] === column) ?? '';
  const change = (column: number, use: FieldName | '') => {
    // A column has one use, and a field one column.
    const others = FIELDS.filter((field) => field !== use && mapping[field] !== column);
    const kept = Object.fromEntries(others.map((field) => [field, mapping[field]]));
    onChange(use === '' ? kept : { ...kept, [use]: column });
  };
  const columns: Column<number>[] = [
    { id: 'column', title: batches.column, isRowHeader: true, cell: nameOf },
    {
      id: 'use',
      title: batches.use,
      cell: (column) => (
        <div className={styles.use}>
          <Select
            label={batches.purposeOf(nameOf(column))}
            isLabelHidden
            options={uses}
            value={purposeOf(column)}
            onChange={(use) => change(column, use)}
          />
        </div>
      ),
    },
    {
      id: 'sample',
      title: batches.sample,
      cell: (column) => (
        <ul className={styles.sample}>
          {file.rows.slice(0, SAMPLE_ROWS).map((row, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a row is its position.
            <li key={index}>{row[column]}</li>
          ))}
        </ul>
      ),
    },
  ];
  return (
    <Section title={batches.columnsTitle}>
      <p>{batches.columnsText}</p>
      <Table caption={batches.columnsTitle} columns={columns} rows={[...file.header.keys()]} keyOf={String} />
      {mapping.target_url === undefined && <Notice look="warning">{batches.needsTarget}</Notice>}
    </Section>
  );
}
