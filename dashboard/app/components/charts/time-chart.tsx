import { ChartLine, Download, Table2 } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import type { Interval } from '../../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { serverNow } from '../../data/clock.ts';
import { useFormat } from '../../data/format.ts';
import { useFirstMessages } from '../../messages/index.ts';
import { Button } from '../button.tsx';
import { Table } from '../table.tsx';
import styles from './charts.module.css';
import { downloadCsv } from './csv.ts';

/** Loaded after the figures, which are readable without it: uPlot is 20 KB compressed. */
const Plot = lazy(() => import('./plot.tsx'));

/** Scans and visitors over the days or hours of a window: a chart, the same as a table, and as CSV. */
export function TimeChart({
  title,
  intervals,
  file,
}: {
  readonly title: string;
  readonly intervals: readonly Interval[];
  readonly file: string;
}) {
  const { charts } = useFirstMessages();
  const format = useFormat();
  const [isTable, setTable] = useState(false);
  const isByHour = intervals[0]?.start.includes('T') ?? false;
  const name = ({ start }: Interval) => (isByHour ? `${format.day(start)}, ${start.slice(11, 16)}` : format.day(start));
  const [first, last] = [intervals[0], intervals.at(-1)];
  const isPartial =
    last !== undefined && new Date(serverNow()).toISOString().startsWith(last.start.slice(0, isByHour ? 13 : 10));
  return (
    <figure className={styles.figure}>
      <figcaption className={styles.caption}>
        <div>
          <h3>{title}</h3>
          {first && last && <p className={styles.period}>{charts.period(name(first), name(last), isPartial)}</p>}
        </div>
        <div className={styles.buttons}>
          <Button look="quiet" icon={isTable ? ChartLine : Table2} onPress={() => setTable(!isTable)}>
            {isTable ? charts.showChart : charts.showTable}
          </Button>
          <Button
            look="quiet"
            icon={Download}
            onPress={() =>
              downloadCsv(file, [
                [isByHour ? 'hour' : 'day', 'scans', 'visitors'],
                ...intervals.map(({ start, scans, uniqueScans }) => [start, String(scans), String(uniqueScans)]),
              ])
            }
          >
            CSV<span className="visually-hidden"> ({title})</span>
          </Button>
        </div>
      </figcaption>
      {isTable ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard.
        <section className={styles.table} tabIndex={0} aria-label={title}>
          <Table
            caption={title}
            keyOf={({ start }) => start}
            rows={[...intervals].reverse()}
            columns={[
              { id: 'start', title: isByHour ? charts.hour : charts.day, cell: name, isRowHeader: true },
              { id: 'scans', title: charts.scans, cell: ({ scans }) => format.number(scans), isFigure: true },
              {
                id: 'visitors',
                title: charts.visitors,
                cell: ({ uniqueScans }) => format.number(uniqueScans),
                isFigure: true,
              },
            ]}
          />
        </section>
      ) : (
        <Suspense fallback={<div className={styles.plot} />}>
          <Plot intervals={intervals} isPartial={isPartial} label={title} />
        </Suspense>
      )}
    </figure>
  );
}
