import { postgresProblem } from '../common/postgres/postgres-problem.ts';
import { reportFatalError } from '../common/runtime/fatal-errors.ts';
import { openLogger } from '../common/runtime/logger.ts';
import { stopAtOnce } from '../common/runtime/stop-request.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { CORE_VARIABLES } from './config.ts';
import { openDatabase } from './db/database.ts';
import { migrations } from './db/migrations/index.ts';
import { entities } from './entities.ts';

/**
 * `npm run migrate`: brings the schema up to date, for installations in which that is a step of its own
 * (`MIGRATE=false`). May run while cores of older releases run; see docs/operating/upgrades.md, "Upgrades".
 */
try {
  stopAtOnce();
  const { DATABASE_URL } = readVariables({ DATABASE_URL: CORE_VARIABLES.DATABASE_URL }, process.env);
  await using running = new AsyncDisposableStack();
  const database = await openDatabase(DATABASE_URL, 2, entities, openLogger('warn', { process: 'migration' }));
  running.defer(() => database.close());
  const state = await database.migrate();
  console.log(
    state === 'newer'
      ? 'The schema is newer than this release, which can use it. Nothing was changed.'
      : `The schema is up to date: ${migrations.at(-1)?.name}.`,
  );
} catch (error) {
  reportFatalError(error, { sentenceOf: postgresProblem });
}
