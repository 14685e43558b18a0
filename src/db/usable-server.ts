import type { ClientBase, Pool } from 'pg';
import { OperatorError } from '../../common/runtime/operator-error.ts';

const MIN_VERSION = 18;

const ISOLATION = 'read committed';

/**
 * Fails with an `OperatorError` if Postgres is older than what the statements need, the database is not in UTF-8, or
 * transactions don't see what others commit meanwhile: most of those that wait for a lock would fail.
 */
export async function expectUsableServer(client: Pick<Pool | ClientBase, 'query'>): Promise<void> {
  const { rows } = await (client as Pool).query<{ version: string; encoding: string; isolation: string }>(
    `select current_setting('server_version') as version, current_setting('server_encoding') as encoding,
            current_setting('default_transaction_isolation') as isolation`,
  );
  const { version = '', encoding = '', isolation = '' } = rows[0] ?? {};
  if (Number.parseInt(version, 10) < MIN_VERSION) {
    throw new OperatorError(`DATABASE_URL points to Postgres ${version}; Signpost needs Postgres ${MIN_VERSION}.`);
  }
  if (encoding !== 'UTF8') {
    throw new OperatorError(`DATABASE_URL points to a database in ${encoding}; Signpost needs one in UTF8.`);
  }
  if (isolation !== ISOLATION) {
    throw new OperatorError(
      `Sessions of DATABASE_URL have default_transaction_isolation '${isolation}'; Signpost needs '${ISOLATION}', ` +
        'which is the default: reset it for the role, the database and the server.',
    );
  }
}
