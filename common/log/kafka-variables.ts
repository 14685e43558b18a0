import type { KafkaConfig, SASLOptions } from 'kafkajs';
import { OperatorError } from '../runtime/operator-error.ts';
import { readConfiguredFile } from '../runtime/read-configured-file.ts';
import { flag, optionalOneOf, optionalText, type Values } from '../runtime/variables.ts';

/** How a program connects to Kafka and logs in; the same for core and gateway. */
export const KAFKA_VARIABLES = {
  KAFKA_TLS: { type: flag(false), about: 'Connects to Kafka over TLS.' },
  KAFKA_CA: {
    type: optionalText('a PEM file'),
    about: 'The authority that signed the brokers’ certificates. Unset: the authorities that Node trusts.',
  },
  KAFKA_CERT: {
    type: optionalText('a PEM file'),
    about: 'The certificate, with its chain, that this program shows to brokers that ask for one.',
  },
  KAFKA_KEY: { type: optionalText('a PEM file'), about: 'Its private key.' },
  KAFKA_SASL_MECHANISM: {
    type: optionalOneOf(['plain', 'scram-sha-256', 'scram-sha-512']),
    about: 'How this program logs in to Kafka. `plain` sends the password itself: only over TLS.',
  },
  KAFKA_USERNAME: { type: optionalText('a name'), about: 'Who logs in to Kafka.' },
  KAFKA_PASSWORD: { type: optionalText('a password'), about: 'The password of `KAFKA_USERNAME`.' },
} as const;

/** What kafkajs is told of TLS and of the login. */
export type KafkaSecurity = Pick<KafkaConfig, 'ssl' | 'sasl'>;

/**
 * Reads the files that the variables name; they are read once, so a program is restarted to use new ones. Throws
 * `OperatorError` when variables do not go together or a file can't be read.
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
    throw new OperatorError('KAFKA_CERT and KAFKA_KEY are needed both, or neither.');
  }
  return {
    ssl: {
      ...(ca !== undefined && { ca: readConfiguredFile('KAFKA_CA', ca) }),
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
      'KAFKA_SASL_MECHANISM, KAFKA_USERNAME and KAFKA_PASSWORD are needed all three, or none of them.',
    );
  }
  return { sasl: { mechanism, username, password } as SASLOptions };
}
