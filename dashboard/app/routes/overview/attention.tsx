import { Link } from '@tanstack/react-router';
import { CircleCheck } from 'lucide-react';
import type { ReactNode } from 'react';
import type { GetAccountResponse } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { type Batch, BatchStatus } from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { DomainState } from '../../../../proto/gen/signpost/domains/v1/domains_pb.ts';
import type { Endpoint } from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { Notice, Status } from '../../components/page.tsx';
import { useRelativeTime } from '../../components/time.tsx';
import { useFormat } from '../../data/format.ts';
import { useFirstMessages } from '../../messages/index.ts';
import styles from './overview.module.css';
import { type Concern, useAttention } from './use-attention.ts';

/** What needs attention, each with a link to it; or one line that says that nothing does. */
export function Attention({ account }: { readonly account: GetAccountResponse }) {
  const { overview } = useFirstMessages();
  const { concerns, isLoading, isComplete } = useAttention(account);
  if (concerns.length === 0) {
    if (!isComplete) return <Notice look="warning">{overview.attention.unchecked}</Notice>;
    // Nothing is claimed before all is known, but the line keeps its place.
    return (
      <p className={styles.calm} role="status">
        {!isLoading && <CircleCheck aria-hidden size={16} />}
        {isLoading ? ' ' : overview.attention.none}
      </p>
    );
  }
  return (
    <section aria-label={overview.attention.title} className={styles.attention}>
      <h2>{overview.attention.title}</h2>
      <ul>
        {concerns.map((concern) => (
          <ConcernEntry key={keyOf(concern)} concern={concern} />
        ))}
      </ul>
      {!isComplete && <Notice look="warning">{overview.attention.unchecked}</Notice>}
    </section>
  );
}

function keyOf(concern: Concern): string {
  if (concern.kind === 'domain') return concern.domain.id;
  if (concern.kind === 'endpoint') return concern.endpoint.id;
  if (concern.kind === 'undelivered') return `${concern.endpoint.id} undelivered`;
  return concern.kind === 'batch' ? concern.batch.id : concern.kind;
}

function ConcernEntry({ concern }: { readonly concern: Concern }) {
  const {
    common,
    overview: { attention: texts },
  } = useFirstMessages();
  const format = useFormat();
  if (concern.kind === 'domain') {
    const { hostname, state, problem } = concern.domain;
    const isFailing = state === DomainState.FAILING;
    return (
      <Entry
        look={isFailing ? 'danger' : 'warning'}
        text={isFailing ? texts.domainFailing(hostname) : texts.domainWaiting(hostname)}
        note={common.coreSentence(problem)}
        link={<Link to="/domains">{texts.domainAction}</Link>}
      />
    );
  }
  if (concern.kind === 'endpoint') return <EndpointEntry endpoint={concern.endpoint} />;
  if (concern.kind === 'undelivered') {
    const { id, url, failedDeliveries: count = 0 } = concern.endpoint;
    // The core counts no further.
    const counted = count >= 100 ? `≥ ${format.number(count)}` : format.number(count);
    return (
      <Entry
        look="warning"
        text={texts.endpointFailed(hostOf(url), counted, count === 1)}
        link={<EndpointLink id={id} />}
      />
    );
  }
  if (concern.kind === 'batch') return <BatchEntry batch={concern.batch} />;
  const [used, limit] = [format.number(concern.used), format.number(concern.limit)];
  const look = concern.used >= concern.limit ? 'danger' : 'warning';
  return concern.kind === 'codes' ? (
    <Entry
      look={look}
      text={texts.codesLimit(used, limit)}
      note={texts.codesLimitNote}
      link={<Link to="/codes">{texts.codesAction}</Link>}
    />
  ) : (
    <Entry
      look={look}
      text={texts.requestsLimit(used, limit)}
      note={texts.requestsLimitNote}
      link={<Link to="/api">{texts.requestsAction}</Link>}
    />
  );
}

function EndpointEntry({
  endpoint: { id, url, enabled, disabledReason, failingSince },
}: {
  readonly endpoint: Endpoint;
}) {
  const {
    common,
    overview: { attention: texts },
  } = useFirstMessages();
  const relativeTime = useRelativeTime();
  const text =
    enabled && failingSince
      ? texts.endpointFailing(hostOf(url), relativeTime(failingSince))
      : texts.endpointDisabled(hostOf(url));
  return (
    <Entry
      look={enabled ? 'warning' : 'danger'}
      text={text}
      note={common.coreSentence(disabledReason)}
      link={<EndpointLink id={id} />}
    />
  );
}

function EndpointLink({ id }: { readonly id: string }) {
  const { overview } = useFirstMessages();
  return (
    <Link to="/webhooks/$endpointId" params={{ endpointId: id }}>
      {overview.attention.endpointAction}
    </Link>
  );
}

function BatchEntry({ batch: { id, name, status, counts, createdAt } }: { readonly batch: Batch }) {
  const {
    overview: { attention: texts },
  } = useFirstMessages();
  const format = useFormat();
  const { total = 0, pending = 0, failed = 0, skipped = 0 } = counts ?? {};
  const named = name ? texts.batchNamed(name) : texts.batchUnnamed(createdAt ? format.date(createdAt) : '');
  const isRunning = status === BatchStatus.PROCESSING;
  const lost = failed + skipped;
  return (
    <Entry
      look={isRunning ? 'plain' : 'warning'}
      text={
        isRunning
          ? texts.batchRunning(named, format.number(total - pending), format.number(total))
          : texts.batchFailed(named, lost, format.number(lost))
      }
      link={
        <Link to="/batches/$batchId" params={{ batchId: id }}>
          {texts.batchAction}
        </Link>
      }
    />
  );
}

function Entry(props: {
  readonly look: 'plain' | 'warning' | 'danger';
  readonly text: string;
  readonly note?: string | undefined;
  readonly link: ReactNode;
}) {
  return (
    <li className={styles.concern}>
      <div className={styles.concernText}>
        <Status look={props.look}>{props.text}</Status>
        {props.note && <p className={styles.note}>{props.note}</p>}
      </div>
      {props.link}
    </li>
  );
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}
