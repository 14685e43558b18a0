import { useQuery } from '@connectrpc/connect-query';
import { Link } from '@tanstack/react-router';
import { AnalyticsService, type TopCode } from '../../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { CodesService, CodeType } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { StoredCodeImage } from '../../components/code-image.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { nameOfCode } from '../../data/code-names.ts';
import { useFormat } from '../../data/format.ts';
import { useFirstMessages } from '../../messages/index.ts';
import styles from './overview.module.css';
import { refreshInterval } from './refresh-interval.ts';
import { lastDays } from './windows.ts';

/** How many are listed: as many as are beside the chart. */
const LISTED = 5;

/** The codes with the most scans of the period. */
export function TopCodes({ days }: { readonly days: number }) {
  const { overview } = useFirstMessages();
  const top = useQuery(
    AnalyticsService.method.listTopCodes,
    { ...lastDays(days), limit: LISTED },
    { refetchInterval: refreshInterval },
  );
  return (
    <Panel>
      <div className={styles.listTitle}>
        <h3>{overview.topCodes}</h3>
        <Link to="/codes">{overview.allCodes}</Link>
      </div>
      <Loaded query={top}>
        {({ codes }) =>
          codes.length === 0 ? (
            <p className={styles.note}>{overview.topCodesNone}</p>
          ) : (
            <ol className={styles.codes}>
              {codes.map((code) => (
                <Entry key={code.codeId} top={code} />
              ))}
            </ol>
          )
        }
      </Loaded>
    </Panel>
  );
}

/** One code. Its image and target follow its name and scans, which are known first. */
function Entry({ top: { codeId, shortCode, name, scans } }: { readonly top: TopCode }) {
  const { common, overview } = useFirstMessages();
  const format = useFormat();
  const { data } = useQuery(CodesService.method.getCode, { id: codeId }, { retry: false });
  const code = data?.code;
  return (
    <li className={styles.code}>
      <span className={styles.image}>{code && <StoredCodeImage code={code} label="" size={44} />}</span>
      <span className={styles.codeText}>
        <Link to="/codes/$codeId" params={{ codeId }} className={styles.codeName}>
          {code ? nameOfCode(code) : name || shortCode}
        </Link>
        <span className={styles.note}>
          {code?.type === CodeType.LANDING_PAGE
            ? overview.landingPage
            : (code?.targetUrl?.replace(/^https?:\/\//, '') ?? ' ')}
        </span>
      </span>
      <span className={styles.codeScans}>
        {format.number(scans)}
        <span className="visually-hidden"> {common.scans(Number(scans), '')}</span>
      </span>
    </li>
  );
}
