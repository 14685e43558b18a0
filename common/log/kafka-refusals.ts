import type { Logger } from 'pino';
import { throttledReport } from '../runtime/throttled-report.ts';

/** The minimum interval of log lines about the same reason, in ms. */
const LOG_MS = 60_000;

/** What kafkajs and TLS say when a broker, or this program, refuses the other, and what an operator can do about it. */
const REFUSALS: readonly (readonly [RegExp, string])[] = [
  [
    /SASL mechanism .* not (supported|enabled)|not support.* SASL mechanism|UNSUPPORTED_SASL_MECHANISM/i,
    'the brokers do not offer the mechanism in KAFKA_SASL_MECHANISM',
  ],
  [
    /SASL .*authentication failed|invalid credentials|Invalid username or password/i,
    'the brokers refuse the login: check KAFKA_USERNAME, KAFKA_PASSWORD and KAFKA_SASL_MECHANISM',
  ],
  [
    /unable to (verify|get)|self.signed certificate|certificate has expired|certificate's altnames/i,
    'the certificate of a broker is not accepted: check KAFKA_CA, and that KAFKA_BROKERS has the names in it',
  ],
  [
    /alert (bad certificate|certificate|unknown ca|handshake failure|access denied)/i,
    'the brokers refuse the client certificate, or want one: check KAFKA_CERT and KAFKA_KEY',
  ],
  [
    /disconnected before secure TLS connection|wrong version number/i,
    'a broker closes connections during the TLS handshake: if it is not stopping, check KAFKA_TLS and the port',
  ],
  [
    /not authorized|authorization failed/i,
    'a permission is missing: compare those of KAFKA_USERNAME with docs/operating/kafka.md, "Rights in Kafka"',
  ],
];

/** What an operator can do about what kafkajs says; undefined if it is not a refusal. */
function kafkaRefusal(text: string): string | undefined {
  return REFUSALS.find(([pattern]) => pattern.test(text))?.[1];
}

/** What is wrong with Kafka by an error of kafkajs, as a sentence for the operator; undefined for other errors. */
export function kafkaProblem(error: unknown): string | undefined {
  // Its classes have no other common mark.
  if (!(error instanceof Error && error.name.startsWith('KafkaJS'))) return undefined;
  return `Kafka is unavailable: ${kafkaRefusal(error.message) ?? error.message}`;
}

/**
 * Logs refusals: each reason at once and then at most once a minute. A program that brokers refuse continues, like
 * without Kafka, since a login or a right may be added later; nothing else would say that this outage does not end by
 * itself.
 */
export function refusalReporter(logger: Logger): (text: string) => void {
  const reports = new Map<string, (count: number, text: string) => void>();
  return (text) => {
    const reason = kafkaRefusal(text);
    if (reason === undefined) return;
    let report = reports.get(reason);
    if (!report) {
      report = throttledReport(LOG_MS, (times, answer) =>
        logger.error({ reason, answer, times }, 'Kafka refuses this program'),
      );
      reports.set(reason, report);
    }
    report(1, text);
  };
}
