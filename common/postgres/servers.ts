import pg from 'pg';
import { PROMPT_MS, promptQuery } from './sql.ts';
import { isRefusal, isUnavailable, PostgresUnavailable } from './unavailable.ts';

/** What a session tells about its server. */
interface SessionState {
  /** Whether the server is a standby. */
  readonly recovering: boolean;
  /** Whether transactions can't write, on a standby or by `default_transaction_read_only`. */
  readonly read_only: boolean;
}

/**
 * The values of `target_session_attrs` and the sessions that they accept. Source: libpq's documentation, "Connection
 * Control Functions"; `prefer-standby` is left out, as nothing here is read from a standby by preference.
 */
export const SESSION_STATES = {
  any: () => true,
  'read-write': ({ read_only }: SessionState) => !read_only,
  'read-only': ({ read_only }: SessionState) => read_only,
  primary: ({ recovering }: SessionState) => !recovering,
  standby: ({ recovering }: SessionState) => recovering,
};

/** A value of `target_session_attrs`. */
export type WantedState = keyof typeof SESSION_STATES;

/**
 * How long a search that has found no server is not repeated, in ms: all calls that fail meanwhile share its result.
 */
const SEARCH_AGAIN_MS = 200;

/** A host and its port. */
type Server = Pick<pg.ClientConfig, 'host' | 'port'>;

const ignore = () => undefined;

/**
 * The class of clients that connect to whichever of these servers is in the wanted state, like libpq does. They connect
 * to the server that was found last, and search for another one once it can't be reached or has changed its state: all
 * servers are asked at once, since a machine that has vanished answers none.
 */
export function clientClassFor(servers: readonly Server[], wanted: WantedState): typeof pg.Client {
  let found: Promise<Server> | undefined;

  /** Fails if no server is found within `withinMs`. */
  function find(config: pg.ClientConfig, withinMs: number): Promise<Server> {
    if (found === undefined) {
      const search = firstOf(servers, wanted, config, withinMs);
      found = search;
      search.catch(() => {
        setTimeout(() => {
          if (found === search) found = undefined;
        }, SEARCH_AGAIN_MS).unref();
      });
    }
    return found;
  }

  return class extends pg.Client {
    readonly #config: pg.ClientConfig;

    constructor(config: pg.ClientConfig = {}) {
      super(config);
      this.#config = config;
    }

    override connect(): Promise<pg.Client>;
    override connect(callback: ((error: Error) => void) | ((error: null, client: pg.ClientBase) => void)): void;
    override connect(callback?: unknown): Promise<pg.Client> | undefined {
      const connected = this.#connect();
      if (callback === undefined) return connected;
      const tell = callback as (error: Error | null) => void;
      connected.then(() => tell(null), tell);
      return undefined;
    }

    async #connect(): Promise<pg.Client> {
      // Half of the time, so that the other half remains for the connection itself.
      const search = find(this.#config, (this.#config.connectionTimeoutMillis ?? PROMPT_MS) / 2);
      const server = await search;
      Object.assign(this, server);
      const { connection } = this as unknown as { connection: Pick<pg.ClientConfig, 'ssl'> };
      connection.ssl = tlsTo(server.host, this.#config.ssl);
      // Nobody else listens before the connection is handed over, and an unhandled error would end the process.
      this.on('error', ignore);
      try {
        await super.connect();
        await expectState(this, wanted, server);
        this.off('error', ignore);
        return this;
      } catch (error) {
        // It keeps the listener: a client that failed may still emit errors.
        if (found === search) found = undefined;
        this.end().catch(ignore);
        throw error;
      }
    }
  };
}

/**
 * TLS options for this host. pg passes names to the check of certificates, but no addresses: without this, every server
 * named by its address could use a certificate for `localhost`.
 */
export function tlsTo(host: string | undefined, ssl: pg.ClientConfig['ssl']): pg.ClientConfig['ssl'] {
  if (!ssl || host === undefined) return ssl;
  // pg makes the key not enumerable.
  const options = ssl === true ? {} : { ...ssl, key: ssl.key };
  return Object.assign(options, { host });
}

/** The first of the servers that answers in the wanted state. */
async function firstOf(
  servers: readonly Server[],
  wanted: WantedState,
  config: pg.ClientConfig,
  withinMs: number,
): Promise<Server> {
  const [only] = servers;
  if (only && servers.length === 1) return only;
  const searches = servers.map(async (server) => {
    const client = new pg.Client({
      ...config,
      ...server,
      ssl: tlsTo(server.host, config.ssl),
      // pg's pool makes it not enumerable.
      password: config.password,
      connectionTimeoutMillis: withinMs,
      query_timeout: withinMs,
    });
    client.on('error', ignore);
    try {
      await client.connect();
      await expectState(client, wanted, server);
      return server;
    } finally {
      client.end().catch(ignore);
    }
  });
  try {
    return await Promise.any(searches);
  } catch (error) {
    const { errors } = error as AggregateError & { errors: Error[] };
    // A wrong password or an untrusted certificate will not mend itself.
    const refused = errors.find((each) => isRefusal(each) || !isUnavailable(each));
    if (refused) throw refused;
    throw new PostgresUnavailable(errors.map(({ message }) => message).join('; '));
  }
}

async function expectState(client: pg.Client, wanted: WantedState, { host, port }: Server): Promise<void> {
  if (wanted === 'any') return;
  const { rows } = await client.query<SessionState>(
    promptQuery(
      `select pg_is_in_recovery() as recovering, current_setting('transaction_read_only') = 'on' as read_only`,
    ),
  );
  if (rows[0] && SESSION_STATES[wanted](rows[0])) return;
  throw new PostgresUnavailable(`${host}:${port} is not in the state target_session_attrs=${wanted}`);
}
