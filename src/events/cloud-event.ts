import { isoTime } from '../../common/contract/code-json.ts';
import type { EventType } from '../../common/contract/event-types.ts';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { EVENTS } from '../../common/log/topics.ts';
import type { OutboxRecord } from './outbox.ts';

/**
 * A CloudEvent 1.0 in Kafka's binary mode: attributes as `ce_…` headers, only the data as JSON in the value.
 * `accountId` and `subject` are ids with prefixes; the subject is the record's key.
 */
export function cloudEvent(event: {
  type: EventType;
  accountId: string;
  subject: string;
  /** When it happened, by Postgres's clock, in ms since 1970. */
  at: number;
  data: unknown;
  /** The version of a code, which orders the events of a subject. */
  sequence?: number;
}): OutboxRecord {
  return {
    topic: EVENTS.name,
    key: event.subject,
    headers: {
      ce_specversion: '1.0',
      ce_id: encodeId('evt', newUuid()),
      ce_type: event.type,
      ce_source: `/accounts/${event.accountId}`,
      ce_subject: event.subject,
      ...(event.sequence === undefined ? {} : { ce_sequence: String(event.sequence) }),
      ce_time: isoTime(event.at),
      'content-type': 'application/json',
    },
    value: Buffer.from(JSON.stringify(event.data)),
  };
}
