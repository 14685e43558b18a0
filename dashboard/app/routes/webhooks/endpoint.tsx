import { useQuery } from '@connectrpc/connect-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { WebhooksService } from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { Loaded } from '../../components/loaded.tsx';
import { Notice, Page } from '../../components/page.tsx';
import { useRelativeTime } from '../../components/time.tsx';
import { useMay } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import { Deliveries } from './deliveries.tsx';
import { EndpointActions } from './endpoint-actions.tsx';
import { EndpointState } from './endpoint-state.tsx';
import { Secret } from './secret.tsx';
import { TestResult } from './test-result.tsx';
import styles from './webhooks.module.css';

const route = getRouteApi('/webhooks/$endpointId');

/** How often the endpoint's state is loaded again, in ms. */
const REFRESH_MS = 5_000;

/** One endpoint: whether events reach it, what was sent, and what it answered. */
export function EndpointPage() {
  const { webhooks: texts, shell, common } = useMessages();
  const { endpointId } = route.useParams();
  const relativeTime = useRelativeTime();
  const mayChange = useMay('admin');
  const [testId, setTestId] = useState<string>();
  const [secret, setSecret] = useState<string>();
  const list = useQuery(WebhooksService.method.listEndpoints, {}, { refetchInterval: REFRESH_MS });
  const endpoint = list.data?.endpoints.find(({ id }) => id === endpointId);
  const { failingSince, verifiedAt } = endpoint ?? {};
  return (
    <Page
      title={endpoint?.url ?? shell.nav.webhooks}
      subtitle={<Link to="/webhooks">{texts.back}</Link>}
      actions={endpoint && mayChange && <EndpointActions endpoint={endpoint} onTest={setTestId} onSecret={setSecret} />}
    >
      <Loaded query={list}>
        {() =>
          endpoint === undefined ? (
            <Notice>{texts.notFound}</Notice>
          ) : (
            <>
              <div className={styles.state}>
                <EndpointState endpoint={endpoint} />
                {endpoint.disabledReason && <span>{common.coreSentence(endpoint.disabledReason)}</span>}
                {failingSince && <span className={styles.note}>{texts.failingSince(relativeTime(failingSince))}</span>}
                {!failingSince && verifiedAt && (
                  <span className={styles.note}>{texts.verifiedSince(relativeTime(verifiedAt))}</span>
                )}
                <span className={styles.note}>{endpoint.events.join(', ')}</span>
              </div>
              {testId !== undefined && <TestResult key={testId} deliveryId={testId} />}
              <Deliveries endpoint={endpoint} mayChange={mayChange} />
            </>
          )
        }
      </Loaded>
      {secret !== undefined && <Secret secret={secret} onClose={() => setSecret(undefined)} />}
    </Page>
  );
}
