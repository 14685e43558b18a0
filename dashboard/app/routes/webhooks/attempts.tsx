import type { Attempt, Delivery } from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { Status } from '../../components/page.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { useFormat } from '../../data/format.ts';
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

/** What was sent of a delivery, and the latest attempts with what was answered, newest first. */
export function Attempts({ delivery, url }: { readonly delivery: Delivery; readonly url: string }) {
  const { webhooks: texts } = useMessages();
  const format = useFormat();
  const attempts = [...delivery.attempts].reverse();
  return (
    <div className={styles.attempts}>
      <h3>{texts.request}</h3>
      <pre>{`POST ${url}\ncontent-type: application/json\nwebhook-id: ${delivery.eventId}\n\n{"type": "${delivery.eventType}", …}`}</pre>
      <p className={styles.note}>{texts.requestNote}</p>
      <h3>{texts.allAttempts(format.number(attempts.length))}</h3>
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
    </div>
  );
}
