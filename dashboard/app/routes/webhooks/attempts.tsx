import {
  type Attempt,
  type Delivery,
  WebhooksService,
} from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { LoadMore } from '../../components/load-more.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Status } from '../../components/page.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { useFormat } from '../../data/format.ts';
import { usePages } from '../../data/use-pages.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './webhooks.module.css';

export function isSuccess({ status }: Attempt): boolean {
  return status >= 200 && status < 300;
}

/** The HTTP status of an attempt, or that there was no response. */
export function AttemptStatus({ attempt }: { readonly attempt: Attempt }) {
  const { webhooks: texts } = useMessages();
  const text = attempt.status === 0 ? texts.noResponse : String(attempt.status);
  return <Status look={isSuccess(attempt) ? 'good' : 'danger'}>{text}</Status>;
}

/** How often the attempts of a delivery are loaded again while they are shown, in ms. */
const REFRESH_MS = 5_000;

/**
 * The request of a delivery, and its attempts with what was answered, newest first. Without the address: the endpoint
 * may have got another one since.
 */
export function Attempts({ delivery }: { readonly delivery: Delivery }) {
  const { webhooks: texts } = useMessages();
  const format = useFormat();
  const list = usePages(
    WebhooksService.method.listAttempts,
    (cursor) => ({ deliveryId: delivery.id, ...(cursor !== undefined && { cursor }) }),
    ({ nextCursor }) => nextCursor,
    REFRESH_MS,
  );
  return (
    <Loaded query={list}>
      {({ pages }) => {
        const attempts = pages.flatMap((page) => page.attempts);
        return (
          <div className={styles.attempts}>
            <h3>{texts.request}</h3>
            <pre>{`POST\ncontent-type: application/json\nwebhook-id: ${delivery.eventId}\n\n${pages[0]?.body}`}</pre>
            <p className={styles.note}>{texts.requestNote}</p>
            <h3>{texts.attempts}</h3>
            {attempts.length === 0 && <p>{texts.noAttempts}</p>}
            <ol>
              {attempts.map((attempt) => (
                <li key={`${attempt.at?.seconds}.${attempt.at?.nanos}`} className={styles.attempt}>
                  <div className={styles.state}>
                    <AttemptStatus attempt={attempt} />
                    <RelativeTime instant={attempt.at} />
                    <span className={styles.note}>{texts.latency(format.number(attempt.latencyMs))}</span>
                  </div>
                  {attempt.response !== '' && <pre>{attempt.response}</pre>}
                </li>
              ))}
            </ol>
            <LoadMore query={list} />
          </div>
        );
      }}
    </Loaded>
  );
}
