import 'uplot/dist/uPlot.min.css';
import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import type { Interval } from '../../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { useFormat } from '../../data/format.ts';
import { useMedia } from '../../data/media.ts';
import { useTheme } from '../../data/preferences.ts';
import { useFirstMessages } from '../../messages/index.ts';
import styles from './charts.module.css';

const HEIGHT = 240;

/**
 * The drawing: scans as a filled line, visitors as a lighter one. An interval that is not over yet is a dot beside the
 * line, which would fall towards zero. Canvas can't be read aloud, so the table says the same.
 */
export default function Plot({
  intervals,
  isPartial,
  label,
}: {
  readonly intervals: readonly Interval[];
  /** Whether the last interval is not over yet. */
  readonly isPartial: boolean;
  readonly label: string;
}) {
  const { charts } = useFirstMessages();
  const format = useFormat();
  const theme = useTheme();
  const isSystemDark = useMedia('(prefers-color-scheme: dark)');
  const isPrinted = useMedia('print');
  const box = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another theme has other colours, and paper has the light one.
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
    const last = intervals.length - 1;
    const line = uPlot.paths.linear?.();
    const untilPartial: uPlot.Series.PathBuilder = (plot, series, from, to) =>
      line?.(plot, series, from, isPartial ? Math.max(from, Math.min(to, last - 1)) : to) ?? null;
    const dot: uPlot.Series.Points = { show: isPartial, size: 6, filter: () => [last] };
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
          { label: charts.day, value: (_, at) => (at == null ? '' : format.day(new Date(at * 1_000).toISOString())) },
          {
            label: charts.scans,
            stroke: colour('--accent'),
            fill: colour('--accent-tint'),
            width: 2,
            paths: untilPartial,
            points: { ...dot, fill: colour('--accent') },
            value: (_, value) => (value == null ? '' : format.number(value)),
          },
          {
            label: charts.visitors,
            stroke: colour('--edge'),
            width: 1.5,
            dash: [4, 3],
            paths: untilPartial,
            points: dot,
            value: (_, value) => (value == null ? '' : format.number(value)),
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
  }, [intervals, isPartial, format, charts, theme, isSystemDark, isPrinted]);
  return <div ref={box} className={styles.plot} role="img" aria-label={label} />;
}

/** A token's value in the present theme; canvas does not know custom properties or `light-dark()`. */
function resolvedColour(element: HTMLElement, token: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${token})`;
  // A forced colour would also fill the area below the line.
  probe.style.setProperty('forced-color-adjust', 'none');
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
