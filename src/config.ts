import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { KAFKA_VARIABLES } from '../common/log/kafka-variables.ts';
import { databaseUrl } from '../common/postgres/database-url.ts';
import {
  brokers,
  flag,
  integer,
  list,
  logLevel,
  oneOf,
  optionalSecret,
  optionalText,
  origins,
  platformUrl,
  port,
  restricted,
  secret,
  textOr,
  type Values,
} from '../common/runtime/variables.ts';
import { TELEMETRY_VARIABLES } from '../common/telemetry/variables.ts';
import { STANDARD_CALLERS } from './access/requirements.ts';
import { MAX_RETENTION_HOURS } from './events/outbox-retention.ts';

/** The roles that a core may play; each may run in several processes. */
const ROLES = ['rpc', 'relay', 'recorder', 'worker'] as const;

const ADDRESSES = list('an IP address', /^[0-9a-fA-F.:]+$/, []);
const RESOLVERS = list('an IP address or address:port', /^[0-9a-fA-F.:[\]]+$/, []);
const TOKENS = list('a token', /^(?!sk_live_)[\x21-\x2b\x2d-\x7e]{32,}$/, []);

/** Whether Node's resolver accepts these servers. */
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
  CORE_PORT: { type: port(8081), about: 'Connect, gRPC-Web and gRPC over HTTP/1.1 and HTTP/2; JSON with curl.' },
  GRPC_PORT: { type: port(50051), about: 'Native gRPC with reflection and health; used by gateways.' },
  LISTEN_HOST: { type: textOr('an address', '127.0.0.1'), about: 'The address that both ports listen on.' },
  DATABASE_URL: {
    type: databaseUrl,
    about:
      'Postgres 18; several hosts with `target_session_attrs=read-write`, and TLS with `sslmode=verify-full` and ' +
      '`sslrootcert`. If unset, `npm start` starts a local one.',
  },
  MIGRATE: {
    type: flag(true),
    about:
      'Whether the core migrates the schema when it starts. `false`: run `npm run migrate` as a step of its own; the ' +
      'core does not start on an older schema. Its role must own the tables in either case.',
  },
  DATABASE_CONNECTIONS: {
    type: integer(5, 1_000, 20),
    about:
      'Maximum number of connections in the pool of this process. With the role `relay` or `worker` it opens one more for notifications, and with `worker` three for background jobs.',
  },
  KAFKA_BROKERS: {
    type: brokers,
    about: 'Kafka, the log of scans, events and routes. Unset: a log in Postgres, for a single machine.',
  },
  ...KAFKA_VARIABLES,
  PUBLIC_URL: {
    type: platformUrl,
    about: 'Start of scan URLs on the platform’s own host; `PORT` is that of a gateway on this machine.',
  },
  SERVICE_TOKEN: {
    type: restricted(
      TOKENS,
      (tokens) => tokens.length <= 2,
      'one or two tokens of at least 32 characters, not like API keys, separated by a comma',
    ),
    about: 'The token of internal callers; two during a rotation. Unset: no token is accepted.',
  },
  HEALTH_OPEN_TO: {
    type: oneOf(STANDARD_CALLERS, 'everyone'),
    about:
      'Who may call `grpc.health.v1.Health` without a token: `loopback` means programs and proxies on this machine. ' +
      'Gateways, which have no token, must be able to.',
  },
  REFLECTION_OPEN_TO: {
    type: oneOf(STANDARD_CALLERS, 'loopback'),
    about: 'Who may use gRPC reflection without a token. It shows the definitions of all methods, and no data.',
  },
  CORS_ORIGINS: {
    type: origins,
    about: 'Origins whose pages may call Connect and gRPC-Web on `CORE_PORT` from browsers, without cookies.',
  },
  TLS_CERT: {
    type: optionalText('a PEM file'),
    about: 'The certificate of both ports, with its chain; both then accept only TLS. Reloaded every minute.',
  },
  TLS_KEY: { type: optionalText('a PEM file'), about: 'The private key of `TLS_CERT`.' },
  TLS_CLIENT_CA: {
    type: optionalText('a PEM file'),
    about: 'Clients that present a certificate from this CA need no token. Unset: no certificate is requested.',
  },
  SECRET_KEY: {
    type: secret(32),
    about:
      'Signs cursors and encrypts webhook secrets. The same for all cores; changing it invalidates outstanding cursors.',
  },
  FORMER_SECRET_KEY: {
    type: optionalSecret(32),
    about: 'The previous `SECRET_KEY` during a change: decrypts the webhook secrets that it encrypted.',
  },
  PLATFORM_ADDRESSES: {
    type: restricted(ADDRESSES, (all) => all.every((address) => isIP(address) !== 0)),
    about:
      'The platform’s IP addresses. A custom domain is live when it resolves to them or is a CNAME of `PUBLIC_URL`’s ' +
      'host; a target must not be a scan URL on them.',
  },
  DNS_RESOLVERS: {
    type: restricted(RESOLVERS, areResolvers),
    about: 'DNS servers for custom domains and webhook endpoints. Unset: the system’s resolvers.',
  },
  ROLES: {
    type: list(`one of ${ROLES.join(', ')}`, new RegExp(`^(${ROLES.join('|')})$`), ROLES),
    about:
      'What this process does: answer RPCs (rpc), publish the outbox (relay), record scans (recorder), and finish ' +
      'batches, check domains and send webhooks (worker).',
  },
  BATCH_WINDOW_MS: {
    type: integer(0, 60_000, 20_000),
    about:
      'How long a request to create a batch or to change many targets waits for all rows before it answers that they ' +
      'are being processed, in ms. One with a deadline answers a second before it.',
  },
  OUTBOX_RETENTION_HOURS: {
    type: integer(0, MAX_RETENTION_HOURS, 24),
    about:
      'Minimum time that events and routes stay in Postgres after they are published, so that `signpost events ' +
      'republish` can publish them again. 0: they are deleted at once.',
  },
  WEBHOOKS_ALLOW_PRIVATE: {
    type: flag(false),
    about: 'Webhook endpoints may be http and on private addresses. For local runs only.',
  },
  DATA_DIR: {
    type: textOr('a folder', '.signpost'),
    about: 'Holds archives of scans, in `archive`, if `SCANS_ARCHIVE` is `file`; then shared by all cores.',
  },
  SCANS_HOT_MONTHS: {
    type: integer(0, 1_200, 0),
    about: 'How many months of scans before the current one stay in their table; older ones are archived. 0: none are.',
  },
  SCANS_ARCHIVE: {
    type: oneOf(['table', 'file'], 'table'),
    about: 'Form of archived months: a separate table, left in Postgres, or a compressed CSV file.',
  },
  DRAIN_SECONDS: {
    type: integer(0, 300, 0),
    about:
      'How long the core continues to accept connections after it was asked to stop, while its health is `NOT_SERVING`: as long as a balancer needs to notice.',
  },
  LOG_LEVEL: { type: logLevel, about: 'Level of the log: JSON lines on standard output.' },
  ...TELEMETRY_VARIABLES,
} as const;

export type CoreConfig = Values<typeof CORE_VARIABLES>;
