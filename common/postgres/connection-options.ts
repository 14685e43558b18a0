import pg from 'pg';
import { parseIntoClientConfig } from 'pg-connection-string';
import { urlsOfHosts } from './database-url.ts';
import { clientClassFor, tlsTo, type WantedState } from './servers.ts';
import { promptQuery } from './sql.ts';

/**
 * The parameter for public CAs instead of a file, which implies `sslmode=verify-full`. Source: libpq's documentation,
 * "Connection Control Functions".
 */
const PUBLIC_CAS = /([?&])sslrootcert=system(?=&|$)/g;

/** How clients and pools connect by a `DATABASE_URL`. */
export interface ConnectionOptions extends pg.ClientConfig {
  /** The class of the clients, which the pool's options name too. */
  readonly Client: typeof pg.Client;
  /** What is run first on each new connection; a pool does so itself. */
  onConnect(client: pg.ClientBase): Promise<void>;
}

/**
 * Makes Postgres end a session 20 to 40 seconds after its machine has vanished, or when its process, being suspended,
 * leaves a transaction open for 20 seconds. By default it notices the first after two hours and the second never, and
 * until then the session holds its locks: those of rows, and those of the active relay and of recorders. Not sent as
 * parameters of the connection, which PgBouncer refuses.
 */
const END_DEAD_SESSIONS = `set tcp_keepalives_idle = '10s'; set tcp_keepalives_interval = '5s'; set tcp_keepalives_count = 2;
  set tcp_user_timeout = '20s'; set idle_in_transaction_session_timeout = '20s'`;

/** Lets a transaction do more between two statements than `END_DEAD_SESSIONS` leaves time for. */
export const MAY_BE_IDLE = 'set local idle_in_transaction_session_timeout = 0';

/**
 * Reads the URL, and the files that it names, once. Every connection to Postgres is opened by these options: they alone
 * cover its TLS parameters, its hosts and `target_session_attrs`. `settings`: further SET statements for each session.
 */
export function connectionOptions(url: string, settings = ''): ConnectionOptions {
  async function onConnect(client: pg.ClientBase): Promise<void> {
    await client.query(promptQuery(`${END_DEAD_SESSIONS}; ${settings}`));
  }
  // pg would read a file named `system`. Without one, the CAs are those that Node trusts.
  const verified = url.replace(PUBLIC_CAS, '$1sslmode=verify-full');
  const [first, ...others] = (urlsOfHosts(verified) ?? [verified]).map((each) => ({ ...parseIntoClientConfig(each) }));
  const { target_session_attrs: wanted = 'any', ...config } = first as pg.ClientConfig & {
    target_session_attrs?: WantedState;
  };
  if (others.length === 0 && wanted === 'any')
    return { ...config, ssl: tlsTo(config.host, config.ssl), Client: pg.Client, onConnect };
  const servers = [config, ...others].map(({ host = 'localhost', port = 5432 }) => ({ host, port }));
  return { ...config, Client: clientClassFor(servers, wanted), onConnect };
}

/** Options for a pool of such connections. */
export function poolOptions(url: string, settings?: string): pg.PoolConfig {
  // pg's types don't cover that it passes its options to the class.
  return connectionOptions(url, settings) as pg.PoolConfig;
}
