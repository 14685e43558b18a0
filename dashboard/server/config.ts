import {
  integer,
  logLevel,
  networks,
  optionalOrigin,
  optionalText,
  platformUrl,
  port,
  restricted,
  secret,
  text,
  textOr,
  type Values,
} from '../../common/runtime/variables.ts';
import { TELEMETRY_VARIABLES } from '../../common/telemetry/variables.ts';

/** Hosts on this machine, which need no HTTPS. */
const LOOPBACK_HOST = /^(localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** The address of the dashboard. Its cookies are `Secure`, unless it is http on this machine. */
const dashboardUrl = restricted(
  optionalOrigin('http://localhost:$DASHBOARD_PORT'),
  (value) => value === undefined || isSecure(value),
  'an https address of host and port only (http only on localhost)',
);

const issuer = restricted(
  optionalText('an https address (http only on localhost)'),
  (value) => value === undefined || (URL.canParse(value) && isSecure(value)),
);

/** Every variable of the dashboard's server. */
export const DASHBOARD_VARIABLES = {
  DASHBOARD_PORT: { type: port(8090), about: 'The dashboard, its session and its calls to the core; health.' },
  LISTEN_HOST: { type: textOr('an address', '127.0.0.1'), about: 'The address that the port listens on.' },
  DASHBOARD_URL: {
    type: dashboardUrl,
    about:
      'The address under which browsers open the dashboard. Requests that change something must come from its pages.',
  },
  TRUST_PROXY: {
    type: networks,
    about: 'Proxies whose `X-Forwarded-For` header is trusted: attempts to sign in take turns by the client’s address.',
  },
  PUBLIC_URL: { type: platformUrl, about: 'The platform’s own address, as for the core.' },
  OIDC_ISSUER: {
    type: issuer,
    about: 'The issuer of the OpenID provider that members sign in with. Unset: they sign in with links only.',
  },
  OIDC_CLIENT_ID: { type: optionalText('text'), about: 'The dashboard’s client id at the OpenID provider.' },
  OIDC_CLIENT_SECRET: { type: optionalText('text'), about: 'The dashboard’s client secret at the OpenID provider.' },
  CORE_HOST: { type: textOr('a host', '127.0.0.1'), about: 'The host of the cores.' },
  CORE_PORT: { type: port(8081), about: 'The Connect port of the cores.' },
  CORE_CA: {
    type: optionalText('a PEM file'),
    about: 'The CA of the cores’ certificates. If set, the cores are called over TLS.',
  },
  CORE_TIMEOUT_MS: {
    type: integer(100, 600_000, 30_000),
    about: 'Timeout of a call to the core that is not a stream; after it the call fails with `deadline_exceeded`.',
  },
  SERVICE_TOKEN: {
    type: text('the service token of the cores'),
    about: 'Authenticates the calls to the core; of two tokens, separated by a comma, the first is used.',
  },
  SECRET_KEY: {
    type: secret(32),
    about: 'Encrypts session cookies. The same for all instances; changing it signs everybody out.',
  },
  LOG_LEVEL: { type: logLevel, about: 'Level of the log: JSON lines on standard output.' },
  ...TELEMETRY_VARIABLES,
} as const;

export type DashboardConfig = Values<typeof DASHBOARD_VARIABLES>;

/** Whether an address is https, or http on this machine. */
function isSecure(address: string): boolean {
  const { protocol, hostname } = new URL(address);
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK_HOST.test(hostname));
}
