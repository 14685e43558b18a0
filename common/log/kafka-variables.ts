import type { KafkaConfig, SASLOptions } from 'kafkajs';
import { OperatorError } from '../runtime/operator-error.ts';
import { readConfiguredCa, readConfiguredFile } from '../runtime/read-configured-file.ts';
import { flag, optionalOneOf, optionalText, textMatching, type Values } from '../runtime/variables.ts';
import { PREFIX } from './prefixed.ts';

/** Variables for connecting and authenticating to Kafka; the same for core and gateway. */
export const KAFKA_VARIABLES = {
  KAFKA_TLS: { type: flag(false), about: 'Connects to Kafka over TLS.' },
  KAFKA_CA: {
    type: optionalText('a PEM file'),
    about: 'The CA of the brokers’ certificates. Unset: the CAs that Node trusts.',
  },
  KAFKA_CERT: {
    type: optionalText('a PEM file'),
    about: 'The client certificate, with its chain, that this program presents to brokers that request one.',
  },
  KAFKA_KEY: { type: optionalText('a PEM file'), about: 'Its private key.' },
  KAFKA_SASL_MECHANISM: {
    type: optionalOneOf(['plain', 'scram-sha-256', 'scram-sha-512']),
    about: 'How this program authenticates to Kafka. `plain` sends the password itself: use it only over TLS.',
  },
  KAFKA_USERNAME: { type: optionalText('a name'), about: 'The user name for Kafka.' },
  KAFKA_PASSWORD: { type: optionalText('a password'), about: 'The password of `KAFKA_USERNAME`.' },
  KAFKA_PREFIX: {
    type: textMatching('letters, digits, `.`, `_` and `-`', /^[\w.-]{1,100}$/, PREFIX),
    about:
      'The start of the names of all topics, consumer groups and transactional ids; the same for core and gateways.',
  },
} as const;

/** TLS and authentication options for kafkajs. */
export type KafkaSecurity = Pick<KafkaConfig, 'ssl' | 'sasl'>;

/**
 * Reads the files that the variables name, once: a program has to be restarted to use new ones. Throws an
 * `OperatorError` if variables contradict each other or a file can't be read.
 */
export function readKafkaSecurity(values: Values<typeof KAFKA_VARIABLES>): KafkaSecurity {
  return { ...tlsOf(values), ...loginOf(values) };
}

function tlsOf({
  KAFKA_TLS: tls,
  KAFKA_CA: ca,
  KAFKA_CERT: cert,
  KAFKA_KEY: key,
}: Values<typeof KAFKA_VARIABLES>): Pick<KafkaSecurity, 'ssl'> {
  if (!tls) {
    if (ca === undefined && cert === undefined && key === undefined) return {};
    throw new OperatorError('KAFKA_CA, KAFKA_CERT and KAFKA_KEY need KAFKA_TLS=true.');
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw new OperatorError('KAFKA_CERT and KAFKA_KEY must both be set, or neither.');
  }
  return {
    ssl: {
      ...(ca !== undefined && { ca: readConfiguredCa('KAFKA_CA', ca) }),
      ...(cert !== undefined && { cert: readConfiguredFile('KAFKA_CERT', cert) }),
      ...(key !== undefined && { key: readConfiguredFile('KAFKA_KEY', key) }),
    },
  };
}

function loginOf({
  KAFKA_SASL_MECHANISM: mechanism,
  KAFKA_USERNAME: username,
  KAFKA_PASSWORD: password,
}: Values<typeof KAFKA_VARIABLES>): Pick<KafkaSecurity, 'sasl'> {
  if (mechanism === undefined && username === undefined && password === undefined) return {};
  if (mechanism === undefined || username === undefined || password === undefined) {
    throw new OperatorError(
      'KAFKA_SASL_MECHANISM, KAFKA_USERNAME and KAFKA_PASSWORD must all be set, or none of them.',
    );
  }
  return { sasl: { mechanism, username, password } as SASLOptions };
}
