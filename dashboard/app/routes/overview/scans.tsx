import { useQuery } from '@connectrpc/connect-query';
import { AnalyticsService } from '../../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { TimeChart } from '../../components/charts/time-chart.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { useFirstMessages } from '../../messages/index.ts';
import { refreshInterval } from './refresh-interval.ts';
import { lastDays } from './windows.ts';

/** Scans of the account by day. */
export function Scans({ days }: { readonly days: number }) {
  const { overview } = useFirstMessages();
  // Twice the period, as the tile that compares it with the one before asks for.
  const report = useQuery(AnalyticsService.method.getScanReport, lastDays(2 * days + 1), {
    refetchInterval: refreshInterval,
    select: ({ figures }) => figures?.intervals.slice(-days) ?? [],
  });
  return (
    <Panel>
      <Loaded query={report}>
        {(intervals) => <TimeChart title={overview.scansOver} intervals={intervals} file={`scans-${days}-days.csv`} />}
      </Loaded>
    </Panel>
  );
}
