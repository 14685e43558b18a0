import { useQuery } from '@connectrpc/connect-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { QrCode } from 'lucide-react';
import { AccountsService } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { buttonLink } from '../../components/button.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Empty, Page } from '../../components/page.tsx';
import segmented from '../../components/segmented.module.css';
import { useMay } from '../../data/session.ts';
import { useFirstMessages } from '../../messages/index.ts';
import { Attention } from './attention.tsx';
import styles from './overview.module.css';
import { refreshInterval } from './refresh-interval.ts';
import { Scans } from './scans.tsx';
import { PERIODS } from './search.ts';
import { Tiles } from './tiles.tsx';
import { TopCodes } from './top-codes.tsx';

const route = getRouteApi('/');

/** The first page: what needs attention, how much is scanned, and which codes. */
export function Overview() {
  const { overview, shell } = useFirstMessages();
  const { days = 30 } = route.useSearch();
  const query = useQuery(AccountsService.method.getAccount, {}, { refetchInterval: refreshInterval });
  const mayBeNew = query.data?.usage?.codesUsed === 0n;
  const { data: codes } = useQuery(CodesService.method.listCodes, { limit: 1 }, { enabled: mayBeNew });
  const isNew = mayBeNew && codes?.total === 0n;
  return (
    <Page title={shell.nav.overview} actions={!isNew && <Periods />}>
      <Loaded query={query}>
        {(account) =>
          isNew ? (
            <FirstCode />
          ) : (
            <>
              <Attention account={account} />
              <h2 className="visually-hidden">{overview.figures}</h2>
              <Tiles usage={account.usage} days={days} />
              <div className={styles.columns}>
                <Scans days={days} />
                <TopCodes days={days} />
              </div>
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

/** The periods to choose from, as links, so that each has an address. */
function Periods() {
  const { overview } = useFirstMessages();
  return (
    <ul aria-label={overview.period} className={segmented.options}>
      {PERIODS.map((days) => (
        <li key={days}>
          <Link
            to="/"
            search={days === 30 ? {} : { days }}
            activeOptions={{ exact: true }}
            className={segmented.option}
          >
            {overview.days(days)}
          </Link>
        </li>
      ))}
    </ul>
  );
}

/** For an account without codes: the one next step. */
function FirstCode() {
  const { overview } = useFirstMessages();
  const mayCreate = useMay('editor');
  return (
    <Empty
      icon={QrCode}
      title={overview.first.title}
      action={
        mayCreate && (
          <Link to="/codes/new" className={buttonLink.primary}>
            {overview.first.action}
          </Link>
        )
      }
    >
      {mayCreate ? overview.first.text : overview.first.viewer}
    </Empty>
  );
}
