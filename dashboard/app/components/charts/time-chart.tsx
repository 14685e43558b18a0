import 'uplot/dist/uPlot.min.css';
import { ChartLine, Download, Table2 } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import type { Interval } from '../../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { useFormat } from '../../data/format.ts';
import { useTheme } from '../../data/preferences.ts';
import { useMessages } from '../../messages/index.ts';
import { Button } from '../button.tsx';
import { Table } from '../table.tsx';
import styles from './charts.module.css';
import { downloadCsv } from './csv.ts';

const HEIGHT = 240;

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
  const { charts } = useMessages();
  const format = useFormat();
  const [isTable, setTable] = useState(false);
  const isByHour = intervals[0]?.start.includes('T') ?? false;
  const name = ({ start }: Interval) => (isByHour ? `${format.day(start)}, ${start.slice(11, 16)}` : format.day(start));
  const [first, last] = [intervals[0], intervals.at(-1)];
  return (
    <figure className={styles.figure}>
      <figcaption className={styles.caption}>
        <div>
          <h3>{title}</h3>
          {first && last && <p className={styles.period}>{charts.period(name(first), name(last))}</p>}
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
        <div className={styles.table}>
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
        </div>
      ) : (
        <Plot intervals={intervals} label={title} />
      )}
    </figure>
  );
}

/** The drawing: scans as a filled line, visitors as a lighter one. Canvas can't be read aloud, so the table says the same. */
function Plot({ intervals, label }: { readonly intervals: readonly Interval[]; readonly label: string }) {
  const { charts } = useMessages();
  const format = useFormat();
  const theme = useTheme();
  const box = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another theme has other colours.
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const colour = (token: string) => resolvedColour(element, token);
    const axis = {
      stroke: colour('--muted'),
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { show: false },
      font: '12px system-ui, sans-serif',
    };
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
        cursor: { y: false, drag: { x: false, y: false } },
        legend: { live: true },
        scales: { y: { range: (_, __, most) => [0, Math.max(most * 1.05, 4)] } },
        axes: [
          {
            ...axis,
            grid: { show: false },
            values: (_, at) => at.map((seconds) => format.day(new Date(seconds * 1_000).toISOString())),
            space: 72,
          },
          {
            ...axis,
            size: 56,
            values: (_, at) => at.map((value) => (Number.isInteger(value) ? format.compact(value) : '')),
          },
        ],
        series: [
          { label: charts.day, value: (_, at) => (at == null ? '–' : format.day(new Date(at * 1_000).toISOString())) },
          {
            label: charts.scans,
            stroke: colour('--accent'),
            fill: colour('--accent-tint'),
            width: 2,
            points: { show: false },
            value: (_, value) => (value == null ? '–' : format.number(value)),
          },
          {
            label: charts.visitors,
            stroke: colour('--edge'),
            width: 1.5,
            dash: [4, 3],
            points: { show: false },
            value: (_, value) => (value == null ? '–' : format.number(value)),
          },
        ],
      },
      [
        intervals.map(({ start }) => Date.parse(start) / 1_000),
        intervals.map(({ scans }) => Number(scans)),
        intervals.map(({ uniqueScans }) => Number(uniqueScans)),
      ],
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [intervals, format, charts, theme]);
  return <div ref={box} className={styles.plot} role="img" aria-label={label} />;
}

/** A token's value in the present theme; canvas does not know custom properties or `light-dark()`. */
function resolvedColour(element: HTMLElement, token: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${token})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
