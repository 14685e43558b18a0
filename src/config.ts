import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { KAFKA_VARIABLES } from '../common/log/kafka-variables.ts';
import {
  flag,
  HOST_AND_PORT,
  integer,
  list,
  logLevel,
  oneOf,
  optionalSecret,
  optionalText,
  origin,
  port,
  secret,
  text,
  textOr,
  type Values,
} from '../common/runtime/variables.ts';
import { MOST_KEPT_HOURS } from './events/outbox-retention.ts';

/** The roles that a core may play; each may run in several processes. */
export const ROLES = ['rpc', 'relay', 'recorder', 'worker'] as const;

const ADDRESSES = list('an IP address', /^[0-9a-fA-F.:]+$/, []);
const RESOLVERS = list('an IP address or address:port', /^[0-9a-fA-F.:[\]]+$/, []);

/** Whether Node's resolver takes them. */
function areResolvers(servers: readonly string[]): boolean {
  try {
    new Resolver().setServers(servers);
    return true;
  } catch {
    return false;
  }
}

/** Every variable of the core. */
export const CORE_VARIABLES = {
  CORE_PORT: { type: port(8081), about: 'Connect, gRPC-Web and gRPC over HTTP/1.1 and HTTP/2; JSON by curl.' },
  GRPC_PORT: { type: port(50051), about: 'Native gRPC with reflection and health; gateways come in here.' },
  LISTEN_HOST: { type: textOr('an address', '127.0.0.1'), about: 'The address that both ports listen on.' },
  DATABASE_URL: { type: text('a Postgres address'), about: 'Postgres 18. `npm start` runs one of its own when unset.' },
  DATABASE_CONNECTIONS: { type: integer(5, 1_000, 20), about: 'The most connections that this process opens.' },
  KAFKA_BROKERS: {
    type: list('host:port', HOST_AND_PORT, []),
    about: 'Kafka, as the log of scans, events and routes. Unset: a log in Postgres, for one machine.',
  },
  ...KAFKA_VARIABLES,
  PUBLIC_URL: { type: origin('http://localhost:8080'), about: 'What scan URLs on the platform’s own host start with.' },
  SERVICE_TOKEN: {
    type: list('one or two tokens of at least 32 characters', /^[\x21-\x2b\x2d-\x7e]{32,}$/, []),
    about: 'What internal callers present. Two while it is rotated. Unset: no internal caller is let in.',
  },
  TLS_CERT: {
    type: optionalText('a PEM file'),
    about: 'The certificate of both ports, with its chain. Set, both speak TLS only. Read again every minute.',
  },
  TLS_KEY: { type: optionalText('a PEM file'), about: 'Its private key.' },
  TLS_CLIENT_CA: {
    type: optionalText('a PEM file'),
    about:
      'Who shows a certificate of this authority is an internal caller, without a token. Unset: none is asked for.',
  },
  SECRET_KEY: {
    type: secret(32),
    about: 'Signs cursors and encrypts webhook secrets. The same for all cores; changing it ends walks in hand.',
  },
  FORMER_SECRET_KEY: {
    type: optionalSecret(32),
    about: 'The `SECRET_KEY` before, while it is changed: still opens the webhook secrets that it encrypted.',
  },
  PLATFORM_ADDRESSES: {
    type: { ...ADDRESSES, schema: ADDRESSES.schema.refine((all) => all.every((address) => isIP(address) !== 0)) },
    about:
      'Where the platform is reached. A custom domain is live with these, or as a CNAME for `PUBLIC_URL`’s host; a ' +
      'target must not be a scan URL on them.',
  },
  DNS_RESOLVERS: {
    type: { ...RESOLVERS, schema: RESOLVERS.schema.refine(areResolvers) },
    about: 'Who is asked about custom domains and webhook endpoints. Unset: the resolvers of the system.',
  },
  ROLES: {
    type: list(`of ${ROLES.join(', ')}`, new RegExp(`^(${ROLES.join('|')})$`), ROLES),
    about:
      'What this process does: answer calls, carry the outbox to the log, record scans; and as a worker finish ' +
      'batches, check domains, send webhooks.',
  },
  BATCH_WINDOW_MS: {
    type: integer(0, 60_000, 20_000),
    about:
      'How long a batch’s request waits until its codes are created before it answers that some are still to come, in ms.',
  },
  OUTBOX_RETENTION_HOURS: {
    type: integer(0, MOST_KEPT_HOURS, 24),
    about:
      'How long events and routes stay in Postgres once they are published, at least: what `signpost events republish` ' +
      'can send again. 0: they are deleted at once.',
  },
  WEBHOOKS_ALLOW_PRIVATE: {
    type: flag(false),
    about: 'Webhook endpoints may be http and on private addresses. For local runs only.',
  },
  DATA_DIR: {
    type: textOr('a folder', '.signpost'),
    about: 'Keeps archives of scans, in `archive`, where `SCANS_ARCHIVE` is `file`; then the same one for all cores.',
  },
  SCANS_HOT_MONTHS: {
    type: integer(0, 1_200, 0),
    about: 'So many months of scans before this one stay in their table, older ones are archived. 0: all stay.',
  },
  SCANS_ARCHIVE: {
    type: oneOf(['table', 'file'], 'table'),
    about: 'What old months of scans become: a table of their own, left in Postgres, or a compressed CSV file.',
  },
  LOG_LEVEL: { type: logLevel, about: 'How much is logged, as JSON lines on standard output.' },
} as const;

export type CoreConfig = Values<typeof CORE_VARIABLES>;
