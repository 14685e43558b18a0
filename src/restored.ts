import { raiseOffsets } from '../common/log/postgres.ts';
import { ROUTES } from '../common/log/topics.ts';
import { postgresProblem } from '../common/postgres/postgres-problem.ts';
import { reportFatalError } from '../common/runtime/fatal-errors.ts';
import { stopAtOnce } from '../common/runtime/stop-request.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { republishCodes } from './codes/republish.ts';
import { CORE_VARIABLES } from './config.ts';
import { openDatabase } from './db/database.ts';
import { republishDomains } from './domains/republish.ts';
import { entities } from './entities.ts';

/**
 * `npm run restored`: run it once after restoring Postgres from a backup. Gateways and the routes topic have newer
 * versions than the restored database, whose next changes they would ignore as outdated. May run while everything else
 * runs, and repeatedly; the relay of any core publishes what it writes.
 */

/**
 * Added to every version, if the time in ms is not above that: more changes than one code can have seen since the
 * backup. The time also exceeds what gateways have seen after an earlier restore of the same backup.
 */
const VERSION_OFFSET = 1_000_000;

/** Added to every offset of the routes topic: more records than one partition can have got since the backup. */
const POSITION_OFFSET = 1_000_000_000;

try {
  stopAtOnce();
  const { DATABASE_URL } = readVariables({ DATABASE_URL: CORE_VARIABLES.DATABASE_URL }, process.env);
  await using running = new AsyncDisposableStack();
  const database = await openDatabase(DATABASE_URL, 2, entities);
  running.defer(() => database.close());
  // With the log in Postgres, a gateway that did not run meanwhile would skip the records with offsets that it has
  // already read once. The records that follow supersede all earlier ones.
  await raiseOffsets(database.pool, ROUTES.name, POSITION_OFFSET);
  const domains = await republishDomains(database, VERSION_OFFSET);
  const codes = await republishCodes(database.pool, VERSION_OFFSET);
  console.log(`Republished: codes ${codes}, domains ${domains}.`);
} catch (error) {
  reportFatalError(error, { sentenceOf: postgresProblem });
}
