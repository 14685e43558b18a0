import { OperatorError } from '../common/runtime/operator-error.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { republishCodes } from './codes/republish.ts';
import { CORE_VARIABLES } from './config.ts';
import { openDatabase } from './db/database.ts';
import { republishDomains } from './domains/republish.ts';
import { entities } from './entities.ts';

/**
 * `node src/restored.ts`, once after Postgres was put back from a backup: gateways and the topic of routes know states
 * that Postgres has forgotten, and would take its next changes for older ones. May run beside everything else, and
 * again; the relay of any core carries what it writes.
 */

/** More changes than one code can have seen since the backup. */
const LIFTED = 1_000_000;

try {
  const { DATABASE_URL } = readVariables({ DATABASE_URL: CORE_VARIABLES.DATABASE_URL }, process.env);
  await using running = new AsyncDisposableStack();
  const database = await openDatabase(DATABASE_URL, 2, entities);
  running.defer(() => database.close());
  const domains = await republishDomains(database, LIFTED);
  const codes = await republishCodes(database.pool, LIFTED);
  console.log(`Published anew: ${codes} codes, ${domains} domains.`);
} catch (error) {
  console.error(error instanceof OperatorError ? error.message : error);
  process.exitCode = 1;
}
