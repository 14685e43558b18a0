import pg from 'pg';
import { parseIntoClientConfig } from 'pg-connection-string';
import { urlsOfHosts } from './database-url.ts';
import { clientOf, tlsTo, type WantedState } from './servers.ts';

/** How clients and pools connect by a `DATABASE_URL`. */
export interface ConnectionOptions extends pg.ClientConfig {
  /** The class of the clients, which the pool's options name too. */
  readonly Client: typeof pg.Client;
}

/**
 * Reads the URL, and the files that it names, once. Every connection to Postgres is opened by these options: they alone
 * cover its TLS parameters, its hosts and `target_session_attrs`.
 */
export function connectionOptions(url: string): ConnectionOptions {
  const [first, ...others] = (urlsOfHosts(url) ?? [url]).map((each) => ({ ...parseIntoClientConfig(each) }));
  const { target_session_attrs: wanted = 'any', ...config } = first as pg.ClientConfig & {
    target_session_attrs?: WantedState;
  };
  if (others.length === 0 && wanted === 'any')
    return { ...config, ssl: tlsTo(config.host, config.ssl), Client: pg.Client };
  const servers = [config, ...others].map(({ host = 'localhost', port = 5432 }) => ({ host, port }));
  return { ...config, Client: clientOf(servers, wanted) };
}

/** Options for a pool of such connections. */
export function poolOptions(url: string): pg.PoolConfig {
  // pg's types don't cover that it passes its options to the class.
  return connectionOptions(url) as pg.PoolConfig;
}
