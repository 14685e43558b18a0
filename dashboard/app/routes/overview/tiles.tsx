import { useQuery } from '@connectrpc/connect-query';
import type { ReactNode } from 'react';
import type { Usage } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { AnalyticsService, Granularity } from '../../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { useFormat } from '../../data/format.ts';
import { useFirstMessages } from '../../messages/index.ts';
import styles from './overview.module.css';
import { refreshInterval } from './refresh-interval.ts';
import { compareToday, lastDays, scansOf } from './windows.ts';

/** The account's figures: scans today and in the period, codes and requests of the plan. */
export function Tiles({ usage, days }: { readonly usage: Usage | undefined; readonly days: number }) {
  const { overview } = useFirstMessages();
  return (
    <dl className={styles.tiles}>
      <TodayTile />
      <PeriodTile days={days} />
      {usage && <LimitTile label={overview.codes} used={usage.codesUsed} limit={usage.codeLimit} />}
      {usage && <LimitTile label={overview.requests} used={usage.requestsUsed} limit={usage.monthlyQuota} />}
    </dl>
  );
}

function TodayTile() {
  const { overview } = useFirstMessages();
  const format = useFormat();
  const { data, isLoadingError } = useQuery(
    AnalyticsService.method.getScanReport,
    { ...lastDays(2), granularity: Granularity.HOUR },
    { refetchInterval: refreshInterval, select: ({ figures }) => compareToday(figures?.intervals ?? []) },
  );
  const note = (today: NonNullable<typeof data>) =>
    today.hours === 0
      ? overview.todayStarted
      : overview.todayNote(
          `${String(today.hours).padStart(2, '0')}:00`,
          format.number(today.before.today),
          format.number(today.before.yesterday),
        );
  return (
    <Tile
      label={overview.today}
      value={data && format.number(data.scans)}
      note={data && note(data)}
      isFailed={isLoadingError}
    />
  );
}

function PeriodTile({ days }: { readonly days: number }) {
  const { overview } = useFirstMessages();
  const format = useFormat();
  const { data, isLoadingError } = useQuery(AnalyticsService.method.getScanReport, lastDays(2 * days + 1), {
    refetchInterval: refreshInterval,
    select: ({ figures }) => {
      const intervals = figures?.intervals ?? [];
      return {
        scans: scansOf(intervals.slice(-days)),
        // Today is not over, so the days before it are compared: as many as the period has.
        last: scansOf(intervals.slice(-days - 1, -1)),
        before: scansOf(intervals.slice(0, -days - 1)),
      };
    },
  });
  const note = ({ last, before }: NonNullable<typeof data>) =>
    before === 0 ? overview.noChange(days) : overview.change(format.change(last / before - 1), days);
  return (
    <Tile
      label={overview.inPeriod(days)}
      value={data && format.number(data.scans)}
      note={data && note(data)}
      isFailed={isLoadingError}
    />
  );
}

function LimitTile(props: { readonly label: string; readonly used: bigint; readonly limit: bigint | undefined }) {
  const { overview } = useFirstMessages();
  const format = useFormat();
  const { label, used, limit } = props;
  const share = limit === undefined ? 0 : Math.min(1, Number(used) / Math.max(1, Number(limit)));
  return (
    <Tile
      label={label}
      value={format.number(used)}
      note={limit === undefined ? overview.unlimited : overview.of(format.number(limit))}
    >
      {limit !== undefined && (
        <span className={styles.meter} aria-hidden>
          <span style={{ width: `${share * 100}%` }} />
        </span>
      )}
    </Tile>
  );
}

function Tile(props: {
  readonly label: string;
  /** Undefined until it is known; the tile keeps its place. */
  readonly value: string | undefined;
  readonly note: string | undefined;
  /** Whether it could not be loaded. */
  readonly isFailed?: boolean;
  readonly children?: ReactNode;
}) {
  const { shell } = useFirstMessages();
  const { value = props.isFailed ? '–' : ' ', note = props.isFailed ? shell.failed.title : ' ' } = props;
  return (
    <div className={styles.tile}>
      <dt>{props.label}</dt>
      <dd className={styles.value}>{value}</dd>
      <dd className={styles.note}>{note}</dd>
      {props.children && <dd>{props.children}</dd>}
    </div>
  );
}
