import { KAFKA_VARIABLES } from '../common/log/kafka-variables.ts';
import { databaseUrl } from '../common/postgres/database-url.ts';
import {
  addresses,
  brokers,
  GATEWAY_PORT,
  integer,
  logLevel,
  networks,
  optionalText,
  platformUrl,
  port,
  textOr,
  type Values,
} from '../common/runtime/variables.ts';
import { TELEMETRY_VARIABLES } from '../common/telemetry/variables.ts';

/** Every variable of the gateway. */
export const GATEWAY_VARIABLES = {
  PORT: { type: port(GATEWAY_PORT), about: 'REST API, scans, health.' },
  LISTEN_HOST: { type: textOr('an address', '127.0.0.1'), about: 'The address that the port listens on.' },
  PUBLIC_URL: {
    type: platformUrl,
    about: 'The platform’s own address: the start of scan URLs, and the base URL in the API reference.',
  },
  DATA_DIR: { type: textOr('a folder', '.signpost/gateway'), about: 'Keeps the route table and the spool of scans.' },
  GATEWAY_WORKERS: {
    type: integer(1, 256, undefined, 'one per CPU'),
    about:
      'Number of worker processes that answer requests. The carrier and the main process are additional. By default no more than fit into a limit on the memory (cgroup), at 256 MiB each.',
  },
  DATABASE_URL: {
    type: databaseUrl,
    about:
      'Used to look up codes that the route table does not contain yet, and to read the salts of the visitor hash; without Kafka also for the log.',
  },
  KAFKA_BROKERS: {
    type: brokers,
    about: 'Kafka, as the log of scans and routes. Unset: the log in Postgres.',
  },
  ...KAFKA_VARIABLES,
  CORE_ADDRESS: {
    type: addresses(['127.0.0.1:50051']),
    about: 'The native gRPC ports of the cores, used round-robin.',
  },
  CORE_CA: {
    type: optionalText('a PEM file'),
    about:
      'The CA of the cores’ certificates, which name the hosts of `CORE_ADDRESS`. If set, the cores are called over TLS.',
  },
  CORE_TIMEOUT_MS: {
    type: integer(100, 600_000, 30_000),
    about: 'Timeout of an API call to the core, except to create a batch (60 s); after it the answer is 503.',
  },
  TRUST_PROXY: {
    type: networks,
    about: 'Proxies whose `Forwarded` and `X-Forwarded-*` headers are trusted.',
  },
  CONNECTIONS_PER_ADDRESS: {
    type: integer(1, 1_000_000, 1_000),
    about:
      'Connections, and requests in progress, that a client address may have with each worker. Connections of trusted proxies are not limited.',
  },
  MAX_CONNECTIONS: {
    type: integer(1, 1_000_000, 10_000),
    about: 'Maximum number of connections with each worker. A further one replaces one that has long been idle.',
  },
  FAILED_AUTHENTICATIONS_PER_MINUTE: {
    type: integer(1, 1_000_000, 100),
    about:
      'API requests with a wrong key that a client address may send to each worker; beyond that the answer is 429.',
  },
  UNKNOWN_CODES_PER_MINUTE: {
    type: integer(1, 1_000_000, 300),
    about: 'Scans of codes that do not exist, from one client address at each worker; beyond that the answer is 429.',
  },
  COUNTRY_HEADER: {
    type: optionalText('the name of a header', /^[\w!#$%&'*+.^`|~-]+$/),
    about: 'The header in which a trusted proxy sends the visitor’s country, such as `CF-IPCountry`.',
  },
  COUNTRY_DATABASE: {
    type: optionalText('an MMDB file'),
    about:
      'Maps visitors’ addresses to countries (GeoLite2-Country, DB-IP); reloaded when it changes. Unset: the bundled one.',
  },
  SPOOL_RETENTION_HOURS: {
    type: integer(0, 168, 0),
    about:
      'How long published scans stay on the gateway’s disk, so that `signpost scans reship` can publish them again. 0: they are deleted at once.',
  },
  DRAIN_SECONDS: {
    type: integer(0, 300, 0),
    about:
      'How long the gateway continues to accept connections after it was asked to stop, while `/readyz` answers 503 and each connection is closed after its next response: as long as a balancer needs to notice.',
  },
  LOG_LEVEL: { type: logLevel, about: 'Level of the log: JSON lines on standard output.' },
  ...TELEMETRY_VARIABLES,
} as const;

export type GatewayConfig = Values<typeof GATEWAY_VARIABLES>;
