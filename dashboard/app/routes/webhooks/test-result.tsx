import { useQuery } from '@connectrpc/connect-query';
import { WebhooksService } from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { LoadFailed } from '../../components/loaded.tsx';
import { Notice } from '../../components/page.tsx';
import { useFormat } from '../../data/format.ts';
import { recoveryInterval } from '../../data/queries.ts';
import { useMessages } from '../../messages/index.ts';
import { isSuccess } from './attempts.tsx';

/** How often the attempts of a test event are looked up until there is one, in ms. */
const LOOK_UP_MS = 500;

/** How the endpoint answers a test event that was just sent. */
export function TestResult({ deliveryId }: { readonly deliveryId: string }) {
  const {
    webhooks: { test: texts, noResponse },
  } = useMessages();
  const format = useFormat();
  const { data, error, refetch } = useQuery(
    WebhooksService.method.listAttempts,
    { deliveryId, limit: 1 },
    {
      refetchInterval: (query) => {
        if (query.state.status === 'error') return recoveryInterval(query);
        return query.state.data?.attempts.length ? false : LOOK_UP_MS;
      },
    },
  );
  if (error && !data) return <LoadFailed error={error} retry={() => void refetch()} />;
  const attempt = data?.attempts[0];
  const text = () => {
    if (!attempt) return texts.waiting;
    if (isSuccess(attempt)) return texts.succeeded(String(attempt.status), format.number(attempt.latencyMs));
    return texts.failed(attempt.status === 0 ? `${noResponse}, ${attempt.response}` : String(attempt.status));
  };
  return (
    <div role="status">
      <Notice look={!attempt || isSuccess(attempt) ? 'plain' : 'warning'}>{text()}</Notice>
    </div>
  );
}
