import type { ClientBase, Pool } from 'pg';
import { OperatorError } from '../../common/runtime/operator-error.ts';

const MIN_VERSION = 18;

/** Settings of a role or database without which cores fail, and the defaults of Postgres, which they need. */
const SETTINGS = [
  // Transactions go by what others have committed while they waited for a lock. Otherwise most of those fail.
  { name: 'default_transaction_isolation', needed: 'read committed', usable: /^read committed$/ },
  // The only style of times that pg reads.
  { name: 'DateStyle', needed: 'ISO', usable: /^ISO\b/ },
] as const;

/**
 * Fails with an `OperatorError` if Postgres is older than what the statements need, the database is not in UTF-8, or
 * its sessions begin with an unusable setting.
 */
export async function expectUsableServer(client: Pick<Pool | ClientBase, 'query'>): Promise<void> {
  const { rows } = await (client as Pool).query<{ version: string; encoding: string; settings: string[] }>(
    `select current_setting('server_version') as version, current_setting('server_encoding') as encoding,
            array(select current_setting(name) from unnest($1::text[]) as name) as settings`,
    [SETTINGS.map(({ name }) => name)],
  );
  const { version = '', encoding = '', settings = [] } = rows[0] ?? {};
  if (Number.parseInt(version, 10) < MIN_VERSION) {
    throw new OperatorError(`DATABASE_URL points to Postgres ${version}; Signpost needs Postgres ${MIN_VERSION}.`);
  }
  if (encoding !== 'UTF8') {
    throw new OperatorError(`DATABASE_URL points to a database in ${encoding}; Signpost needs one in UTF8.`);
  }
  for (const [index, { name, needed, usable }] of SETTINGS.entries()) {
    const value = settings[index] ?? '';
    if (usable.test(value)) continue;
    throw new OperatorError(
      `${name} is '${value}' in the sessions of DATABASE_URL; Signpost needs '${needed}', the default: reset it for the ` +
        'role, the database and the server.',
    );
  }
}
