import { createHmac } from 'node:crypto';
import { Client, escapeLiteral } from 'pg';
import { GATEWAY_ROLE } from '../src/db/gateway-role.ts';
import { LOOPBACK } from './free-port.ts';

/** The superuser, used only by this module. */
export const SUPERUSER = 'postgres';

/** The owner of the database, as which the core logs in. */
export const OWNER = 'signpost';

/** A local Postgres: its port, and the superuser's password, from which those of the other roles are derived. */
export interface LocalServer {
  readonly port: number;
  readonly secret: string;
}

/**
 * The URL of a database for one of the roles. Without `sslmode`, pg would go by `PGSSLMODE`, and the server has no TLS.
 */
export function addressOf({ port, secret }: LocalServer, role: string, database: string): string {
  const password = role === SUPERUSER ? secret : createHmac('sha256', secret).update(role).digest('base64url');
  return `postgres://${role}:${encodeURIComponent(password)}@${LOOPBACK}:${port}/${database}?sslmode=disable`;
}

/** Creates the roles and their database, as far as they are missing. */
export async function createRoles(server: LocalServer): Promise<void> {
  const client = new Client({ connectionString: addressOf(server, SUPERUSER, 'postgres') });
  await client.connect();
  try {
    const roles = await client.query<{ rolname: string }>('select rolname from pg_roles');
    const existing = new Set(roles.rows.map(({ rolname }) => rolname));
    for (const role of [OWNER, GATEWAY_ROLE]) {
      if (existing.has(role)) continue;
      const password = decodeURIComponent(new URL(addressOf(server, role, '')).password);
      // The owner clones databases in tests.
      const rights = role === OWNER ? 'createdb' : '';
      await client.query(`create role ${role} login ${rights} password ${escapeLiteral(password)}`);
    }
    const databases = await client.query('select from pg_database where datname = $1', [OWNER]);
    if (databases.rowCount === 0) await client.query(`create database ${OWNER} owner ${OWNER}`);
  } finally {
    await client.end();
  }
}
