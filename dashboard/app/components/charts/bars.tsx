import { Download } from 'lucide-react';
import { useRef, useState } from 'react';
import { useFormat } from '../../data/format.ts';
import { useFirstMessages } from '../../messages/index.ts';
import { Button } from '../button.tsx';
import { focusableRow, passFocus } from '../focus.ts';
import styles from './charts.module.css';
import { downloadCsv } from './csv.ts';

/** A value of a breakdown with its scans. */
export interface Bar {
  /** As analytics name it. */
  readonly value: string;
  /** As the reader sees it. */
  readonly label: string;
  readonly scans: number;
}

/** The number of rows that are shown at first; breakdowns have up to 51. */
const FIRST_ROWS = 10;

/** A breakdown as a table with a bar in each row: nothing needs to be hovered, and it is read aloud as it is seen. */
export function Bars({
  title,
  bars,
  file,
}: {
  readonly title: string;
  readonly bars: readonly Bar[];
  readonly file: string;
}) {
  const { charts } = useFirstMessages();
  const format = useFormat();
  const [isAll, setAll] = useState(false);
  const table = useRef<HTMLTableElement>(null);
  const total = bars.reduce((sum, { scans }) => sum + scans, 0);
  const most = Math.max(1, ...bars.map(({ scans }) => scans));
  return (
    <figure className={styles.figure}>
      <figcaption className={styles.caption}>
        <h3>{title}</h3>
        {bars.length > 0 && (
          <Button
            look="quiet"
            icon={Download}
            onPress={() =>
              downloadCsv(file, [['value', 'scans'], ...bars.map(({ value, scans }) => [value, String(scans)])])
            }
          >
            CSV<span className="visually-hidden"> ({title})</span>
          </Button>
        )}
      </figcaption>
      {bars.length === 0 ? (
        <p className={styles.empty}>{charts.empty}</p>
      ) : (
        <table ref={table} className={styles.bars}>
          <caption className="visually-hidden">{title}</caption>
          <thead className="visually-hidden">
            <tr>
              <th scope="col">{charts.value}</th>
              <th scope="col">{charts.scans}</th>
              <th scope="col">{charts.share}</th>
            </tr>
          </thead>
          <tbody>
            {(isAll ? bars : bars.slice(0, FIRST_ROWS)).map(({ value, label, scans }) => (
              <tr key={value}>
                <th scope="row">
                  <span className={styles.bar} style={{ width: `${(scans / most) * 100}%` }} />
                  <span className={styles.barLabel}>{label}</span>
                </th>
                <td className="figures">{format.number(scans)}</td>
                <td className="figures">{format.percent(scans / (total || 1))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {!isAll && bars.length > FIRST_ROWS && (
        <div>
          <Button
            look="quiet"
            onPress={() => {
              setAll(true);
              passFocus(() => focusableRow(table.current, FIRST_ROWS));
            }}
          >
            {charts.showAll(format.number(bars.length))}
            <span className="visually-hidden"> ({title})</span>
          </Button>
        </div>
      )}
    </figure>
  );
}
