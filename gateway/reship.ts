import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { kafkaProblem } from '../common/log/kafka-refusals.ts';
import { KAFKA_VARIABLES, readKafkaSecurity } from '../common/log/kafka-variables.ts';
import { openLog } from '../common/log/open.ts';
import { postgresProblem } from '../common/postgres/postgres-problem.ts';
import { reportFatalError } from '../common/runtime/fatal-errors.ts';
import { openLogger } from '../common/runtime/logger.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { GATEWAY_VARIABLES } from './config.ts';
import { reshipScans } from './redirect/spool/reship-scans.ts';
import { SPOOLS } from './redirect/spool/segments.ts';
import { SHIPPED } from './redirect/spool/shipped-segments.ts';

/**
 * `node gateway/reship.ts --since <ms since 1970>`, run on a gateway's machine and with its variables: publishes again
 * the scans on the gateway's disk, and prints the counts as JSON. `signpost scans reship` runs it.
 */
const { DATA_DIR, KAFKA_BROKERS, DATABASE_URL } = GATEWAY_VARIABLES;

try {
  const { since = '' } = parseArgs({ options: { since: { type: 'string' } } }).values;
  if (!/^\d+$/.test(since)) throw new OperatorError('--since must be the time of the oldest scans, in ms since 1970.');
  const config = readVariables({ DATA_DIR, KAFKA_BROKERS, DATABASE_URL, ...KAFKA_VARIABLES }, process.env);
  const [spools, shipped] = [join(config.DATA_DIR, SPOOLS), join(config.DATA_DIR, SHIPPED)];
  if (!existsSync(spools)) throw new OperatorError(`There is no ${spools}: DATA_DIR must be the gateway's.`);
  const log = await openLog({
    kafkaBrokers: config.KAFKA_BROKERS,
    kafkaSecurity: readKafkaSecurity(config),
    kafkaPrefix: config.KAFKA_PREFIX,
    databaseUrl: config.DATABASE_URL,
    clientId: 'signpost-reship',
    logger: openLogger('silent', {}),
  });
  try {
    console.log(JSON.stringify(await reshipScans({ spools, shipped, since: Number(since), log })));
  } finally {
    await log.close();
  }
} catch (error) {
  const message = error instanceof Error ? error.message : undefined;
  reportFatalError(error, { sentenceOf: () => kafkaProblem(error) ?? postgresProblem(error) ?? message });
}
