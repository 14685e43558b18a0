import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { CORE_VARIABLES } from './config.ts';

const NEEDED = { DATABASE_URL: 'postgres://localhost/signpost', SECRET_KEY: randomBytes(32).toString('base64') };
const TOKEN = 'x'.repeat(32);

test.each([
  ['SECRET_KEY', `${randomBytes(60).toString('base64').slice(0, 64)}\n${randomBytes(30).toString('base64')}\n`],
  ['SECRET_KEY', randomBytes(32).toString('base64url')],
  ['SERVICE_TOKEN', `${TOKEN},${TOKEN}`],
  ['KAFKA_BROKERS', 'kafka-1:9092, 192.0.2.1:65535'],
  ['ROLES', 'relay,worker'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector:4318'],
])('%s may be %j', (name, value) => {
  expect(() => readVariables(CORE_VARIABLES, { ...NEEDED, [name]: value })).not.toThrow();
});

test.each([
  ['SECRET_KEY', `hunter2, and ${TOKEN}`, 'at least 32 random bytes in base64'],
  [
    'SERVICE_TOKEN',
    `${TOKEN},${TOKEN},${TOKEN}`,
    'one or two tokens of at least 32 characters, not like API keys, separated by a comma',
  ],
  ...['kafka-1:9092,kafka-2:99999', '[2001:db8::1]:9092', '2001:db8::1:9092', 'kafka-1'].map((value) => [
    'KAFKA_BROKERS',
    value,
    'host:port with a name or an IPv4 address; several are separated by commas',
  ]),
  ['ROLES', 'rpc,web', 'one of rpc, relay, recorder, worker; several are separated by commas'],
  ['PLATFORM_ADDRESSES', '1.2.3', 'an IP address; several are separated by commas'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'nonsense', 'an http or https address'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'foo', 'one of grpc, http/protobuf, http/json'],
  ['OTEL_SDK_DISABLED', 'yes', 'one of true, false'],
])('%s must not be %j', (name, value, type) => {
  expect(() => readVariables(CORE_VARIABLES, { ...NEEDED, [name]: value })).toThrow(
    new OperatorError(`${name} must be ${type}.`),
  );
});
