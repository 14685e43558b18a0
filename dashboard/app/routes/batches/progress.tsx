import { ProgressBar } from 'react-aria-components';
import type { BatchCounts } from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './batches.module.css';

/** How many rows of a batch are final. */
export function Progress({ counts }: { readonly counts: BatchCounts | undefined }) {
  const { batches } = useMessages();
  const format = useFormat();
  const { total = 0, pending = 0 } = counts ?? {};
  const done = total - pending;
  const text = batches.progressText(format.number(done), format.number(total));
  return (
    <ProgressBar
      aria-label={batches.progress}
      value={done}
      maxValue={Math.max(total, 1)}
      valueLabel={text}
      className={styles.progress}
    >
      {({ percentage }) => (
        <>
          <span className={styles.track}>
            <span className={styles.fill} style={{ width: `${percentage}%` }} />
          </span>
          <span className="figures">{text}</span>
        </>
      )}
    </ProgressBar>
  );
}
