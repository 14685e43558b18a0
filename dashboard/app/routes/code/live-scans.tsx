import { timestampDate, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { createClient } from '@connectrpc/connect';
import { Radio, Square } from 'lucide-react';
import { useEffect, useState } from 'react';
import { AnalyticsService, type RecordedScan } from '../../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { Button } from '../../components/button.tsx';
import { Announced, Notice, Panel } from '../../components/page.tsx';
import { Table } from '../../components/table.tsx';
import { serverNow } from '../../data/clock.ts';
import { useErrorText } from '../../data/error-text.ts';
import { useFormat } from '../../data/format.ts';
import { checkSession } from '../../data/queries.ts';
import { transport } from '../../data/transport.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './analytics.module.css';

const POLL_MS = 2_000;

/** How far back the view begins. */
const BEFORE_MS = 5 * 60_000;

/** Scans are recorded up to this long after others that were answered later: each poll reads them again. */
const LATE_MS = 15_000;

/**
 * The newest scans that are listed, and the most that one poll reads: of a code that is scanned 1,000 times a second.
 */
const MAX_SHOWN = 25;
const MAX_READ = 20_000;

const client = createClient(AnalyticsService, transport);

/** The scans of a code as they arrive, on request. */
export function LiveScans({ code }: { readonly code: Code }) {
  const { live } = useMessages().code;
  const [isOn, setOn] = useState(false);
  return (
    <div className={styles.live}>
      <div className={styles.liveHead}>
        <Button icon={isOn ? Square : Radio} onPress={() => setOn(!isOn)}>
          {isOn ? live.stop : live.start}
        </Button>
      </div>
      {isOn && <Arriving code={code} />}
    </div>
  );
}

function Arriving({ code }: { readonly code: Code }) {
  const { code: texts, charts, common } = useMessages();
  const { live } = texts;
  const format = useFormat();
  const errorText = useErrorText();
  const { scans, count, error, isPaused } = useArrivingScans(code.id);
  const devices: Readonly<Record<string, string>> = charts.devices;
  const known = (value: string) => (value === 'unknown' ? common.unknown : value);
  return (
    <>
      <Announced>{error !== undefined && <Notice look="warning">{errorText(error)}</Notice>}</Announced>
      <p role="status" className={styles.muted}>
        {isPaused ? live.paused : live.watching} {count > 0 ? live.count(count, format.number(count)) : live.none}
      </p>
      {scans.length > 0 && (
        <Panel>
          <Table
            caption={live.title}
            keyOf={({ id }) => id}
            rows={scans}
            columns={[
              {
                id: 'time',
                title: live.time,
                cell: ({ scannedAt }) => scannedAt && format.time(timestampDate(scannedAt)),
                isRowHeader: true,
              },
              {
                id: 'country',
                title: live.country,
                cell: ({ country }) => format.country(country) ?? known(country),
              },
              { id: 'device', title: live.device, cell: ({ device }) => devices[device] ?? known(device) },
              { id: 'system', title: live.system, cell: ({ operatingSystem }) => known(operatingSystem) },
              { id: 'browser', title: live.browser, cell: ({ browser }) => known(browser) },
              {
                id: 'referrer',
                title: live.referrer,
                cell: ({ referrer }) => (referrer === 'direct' ? charts.direct : known(referrer)),
              },
            ]}
          />
        </Panel>
      )}
    </>
  );
}

interface Arrived {
  /** The newest ones, newest first. */
  readonly scans: readonly RecordedScan[];
  readonly count: number;
  readonly error?: unknown;
}

/** In ms. */
function answeredAt({ scannedAt }: RecordedScan): number {
  return scannedAt ? timestampMs(scannedAt) : 0;
}

/** Reads what has been recorded since the last scan every two seconds, while the tab is visible. */
function useArrivingScans(codeId: string): Arrived & { readonly isPaused: boolean } {
  const [arrived, setArrived] = useState<Arrived>({ scans: [], count: 0 });
  const [isPaused, setPaused] = useState(document.hidden);
  useEffect(() => {
    const abort = new AbortController();
    // When the scans that the next poll may read again were answered, by their ids.
    const seen = new Map<string, number>();
    let count = 0;
    let since = serverNow() - BEFORE_MS;
    let newest: RecordedScan[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = async () => {
      // Leaving the loop early does not end the call in Connect.
      const call = new AbortController();
      const signal = AbortSignal.any([abort.signal, call.signal]);
      try {
        let read = 0;
        const window = { from: timestampFromMs(since - LATE_MS), to: timestampFromMs(serverNow() + LATE_MS) };
        for await (const { scans } of client.exportScans({ codeId, ...window }, { signal })) {
          for (const scan of scans) {
            const at = answeredAt(scan);
            since = Math.max(since, at);
            if (seen.has(scan.id)) continue;
            seen.set(scan.id, at);
            count += 1;
            newest.push(scan);
          }
          newest = newest.toSorted((one, other) => answeredAt(one) - answeredAt(other)).slice(-MAX_SHOWN);
          read += scans.length;
          if (read >= MAX_READ) break;
        }
        for (const [id, at] of seen) if (at < since - LATE_MS) seen.delete(id);
        setArrived({ scans: [...newest].reverse(), count });
      } catch (error) {
        if (abort.signal.aborted) return;
        checkSession(error);
        setArrived((before) => ({ ...before, error }));
      } finally {
        call.abort();
      }
      if (!document.hidden) timer = setTimeout(() => void poll(), POLL_MS);
      else timer = undefined;
    };
    const onVisibility = () => {
      setPaused(document.hidden);
      if (!document.hidden && timer === undefined) timer = setTimeout(() => void poll(), 0);
    };
    document.addEventListener('visibilitychange', onVisibility);
    timer = setTimeout(() => void poll(), 0);
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisibility);
    };
  }, [codeId]);
  return { ...arrived, isPaused };
}
