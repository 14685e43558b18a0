import type { ClientBase, Pool } from 'pg';
import { OperatorError } from '../../common/runtime/operator-error.ts';

const MIN_VERSION = 18;

/** Fails with an `OperatorError` if Postgres is older than what the statements need, or the database is not in UTF-8. */
export async function expectUsableServer(client: Pick<Pool | ClientBase, 'query'>): Promise<void> {
  const { rows } = await (client as Pool).query<{ version: string; encoding: string }>(
    `select current_setting('server_version') as version, current_setting('server_encoding') as encoding`,
  );
  const { version = '', encoding = '' } = rows[0] ?? {};
  if (Number.parseInt(version, 10) < MIN_VERSION) {
    throw new OperatorError(`DATABASE_URL points to Postgres ${version}; Signpost needs Postgres ${MIN_VERSION}.`);
  }
  if (encoding !== 'UTF8') {
    throw new OperatorError(`DATABASE_URL points to a database in ${encoding}; Signpost needs one in UTF8.`);
  }
}
