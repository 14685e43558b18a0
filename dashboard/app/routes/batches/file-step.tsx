import { FileSpreadsheet, FileUp } from 'lucide-react';
import { DropZone, FileTrigger, isFileDropItem, Text } from 'react-aria-components';
import { Button } from '../../components/button.tsx';
import { downloadCsv } from '../../components/charts/csv.ts';
import { Notice, Section } from '../../components/page.tsx';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './batches.module.css';
import { FIELDS } from './check-rows.ts';
import type { CsvFile, CsvProblem } from './read-csv.ts';

const TEMPLATE_ROW = ['https://example.com/table/1', 'Table 1', 'Restaurant', 'indoors, window', 'T-001', 'menu'];

interface FileStepProps {
  readonly file: CsvFile | CsvProblem | undefined;
  readonly onFile: (file: File | Promise<File>) => void;
}

/** Takes the CSV file: dropped, chosen or pasted. */
export function FileStep({ file, onFile }: FileStepProps) {
  const { batches } = useMessages();
  const format = useFormat();
  const isRead = file !== undefined && 'rows' in file;
  const problem = file !== undefined && 'problem' in file ? file : undefined;
  return (
    <Section title={batches.fileTitle}>
      <DropZone
        aria-label={batches.drop}
        className={styles.drop}
        onDrop={({ items }) => {
          const item = items.find(isFileDropItem);
          if (item) onFile(item.getFile());
        }}
      >
        {isRead ? (
          <FileSpreadsheet aria-hidden size={32} strokeWidth={1.5} />
        ) : (
          <FileUp aria-hidden size={32} strokeWidth={1.5} />
        )}
        <Text slot="label">
          {isRead ? batches.fileSummary(file.name, file.rows.length, format.number(file.rows.length)) : batches.drop}
        </Text>
        <div className={styles.dropActions}>
          <FileTrigger
            acceptedFileTypes={['.csv', '.tsv', '.txt', 'text/csv']}
            onSelect={(files) => {
              const [chosen] = files ?? [];
              if (chosen) onFile(chosen);
            }}
          >
            <Button look={isRead ? 'plain' : 'primary'}>{isRead ? batches.another : batches.choose}</Button>
          </FileTrigger>
          {!isRead && (
            <Button look="quiet" onPress={() => downloadCsv('batch.csv', [FIELDS, TEMPLATE_ROW])}>
              {batches.template}
            </Button>
          )}
        </div>
        <p className={styles.hint}>{batches.fileHint}</p>
      </DropZone>
      {problem && (
        <Notice look="danger">
          {problem.line === undefined
            ? batches.fileProblems[problem.problem]
            : batches.malformedAt(format.number(problem.line))}
        </Notice>
      )}
    </Section>
  );
}
