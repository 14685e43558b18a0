import { pino } from 'pino';
import { describe, inject } from 'vitest';
import { conformance } from './conformance.ts';
import { openKafkaLog } from './kafka.ts';

const brokers = inject('kafkaBrokers');

describe.skipIf(brokers === null)('over a real Apache Kafka', () => {
  conformance('Kafka', () => ({
    open: () =>
      openKafkaLog({
        brokers: (brokers ?? '').split(','),
        clientId: 'signpost-test',
        logger: pino({ level: 'silent' }),
      }),
  }));
});
