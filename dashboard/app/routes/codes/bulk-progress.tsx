import { ProgressBar } from 'react-aria-components';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './bulk.module.css';

interface BulkProgressProps {
  readonly label: string;
  readonly done: number;
  /** Undefined if it is not known how many codes there are. */
  readonly total: number | undefined;
}

/** How many of the selected codes are done. */
export function BulkProgress({ label, done, total }: BulkProgressProps) {
  const { codes } = useMessages();
  const format = useFormat();
  return (
    <ProgressBar
      aria-label={label}
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
              : codes.bulk.progress(format.number(done), format.number(total))}
          </p>
        </>
      )}
    </ProgressBar>
  );
}
