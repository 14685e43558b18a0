import { useQuery } from '@connectrpc/connect-query';
import { keepPreviousData } from '@tanstack/react-query';
import { useState } from 'react';
import {
  AnalyticsService,
  type Figures,
  type Share,
  type TargetShare,
} from '../../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Bar, Bars } from '../../components/charts/bars.tsx';
import { TimeChart } from '../../components/charts/time-chart.tsx';
import { LoadFailed } from '../../components/loaded.tsx';
import { Loading } from '../../components/loading.tsx';
import { Panel, Section } from '../../components/page.tsx';
import { Segmented } from '../../components/segmented.tsx';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './analytics.module.css';
import { LiveScans } from './live-scans.tsx';
import { WorldMap } from './world-map.tsx';

const PERIODS = ['7', '30', '90', '365'] as const;

/** Who scanned the code: when, where, with what, and what decided where they were led. */
export function Analytics({ code }: { readonly code: Code }) {
  const { code: texts } = useMessages();
  const { scans } = texts;
  const [period, setPeriod] = useState<(typeof PERIODS)[number]>('30');
  const { data, error, refetch } = useQuery(
    AnalyticsService.method.getCodeAnalytics,
    { id: code.id, period: Number(period) },
    { placeholderData: keepPreviousData },
  );
  return (
    <Section
      title={scans.title}
      actions={
        <Segmented
          label={scans.period}
          options={PERIODS.map((id) => ({ id, label: scans.days(Number(id)) }))}
          value={period}
          onChange={setPeriod}
        />
      }
    >
      {error && <LoadFailed error={error} retry={() => void refetch()} />}
      {!data && !error && <Loading />}
      {data?.figures && <Charts code={code} figures={data.figures} total={data.totalScans} days={data.period} />}
    </Section>
  );
}

interface ChartsProps {
  readonly code: Code;
  readonly figures: Figures;
  readonly total: bigint;
  readonly days: number;
}

function Charts({ code, figures, total, days }: ChartsProps) {
  const { code: texts, charts, common } = useMessages();
  const { scans } = texts;
  const format = useFormat();
  const labels: Readonly<Record<string, string>> = { unknown: common.unknown, other: common.other };
  const bars = (shares: readonly Share[], label: (value: string) => string | undefined): Bar[] =>
    shares.map(({ value, scans }) => ({ value, label: label(value) ?? labels[value] ?? value, scans: Number(scans) }));
  const file = (part: string) => `${code.shortCode}-${part}.csv`;
  const devices: Readonly<Record<string, string>> = charts.devices;
  const countries = bars(figures.countries, format.country);
  return (
    <>
      <dl className={styles.tiles}>
        <Tile title={scans.inPeriod(days)} value={format.number(figures.scans)} />
        <Tile title={scans.visitors} value={format.number(figures.uniqueScans)} note={charts.visitorsNote} />
        <Tile title={scans.total} value={format.number(total)} />
      </dl>
      <Panel>
        <TimeChart title={scans.byDay} intervals={figures.intervals} file={file('days')} />
      </Panel>
      <LiveScans code={code} />
      {figures.scans > 0n && (
        <>
          <Panel>
            <WorldMap countries={countries} />
            <Bars title={scans.byCountry} bars={countries} file={file('countries')} />
          </Panel>
          <div className={styles.grid}>
            <Panel>
              <Bars
                title={scans.byDevice}
                bars={bars(figures.devices, (value) => devices[value])}
                file={file('devices')}
              />
            </Panel>
            <Panel>
              <Bars
                title={scans.bySystem}
                bars={bars(figures.operatingSystems, () => undefined)}
                file={file('systems')}
              />
            </Panel>
            <Panel>
              <Bars title={scans.byBrowser} bars={bars(figures.browsers, () => undefined)} file={file('browsers')} />
            </Panel>
            <Panel>
              <Bars
                title={scans.byReferrer}
                bars={bars(figures.referrers, (value) => (value === 'direct' ? charts.direct : undefined))}
                file={file('referrers')}
              />
            </Panel>
          </div>
          {figures.targets.length > 0 && (
            <Panel>
              <Bars
                title={scans.byTarget}
                bars={figures.targets.map((share) => targetBar(share, scans))}
                file={file('targets')}
              />
            </Panel>
          )}
        </>
      )}
    </>
  );
}

function targetBar(share: TargetShare, texts: ReturnType<typeof useMessages>['code']['scans']): Bar {
  const { version, rule, variant, scans } = share;
  const value = `${version}/${rule}/${variant}`;
  if (version === 0) return { value, label: texts.earlier, scans: Number(scans) };
  const decided = rule === 0 ? texts.noRule : texts.rule(rule);
  const parts = [texts.version(version), decided, ...(variant === '' ? [] : [texts.variant(variant)])];
  return { value, label: parts.join(', '), scans: Number(scans) };
}

function Tile({ title, value, note }: { readonly title: string; readonly value: string; readonly note?: string }) {
  return (
    <div className={styles.tile}>
      <dt>{title}</dt>
      <dd className={styles.figure}>{value}</dd>
      {note && <dd className={styles.note}>{note}</dd>}
    </div>
  );
}
