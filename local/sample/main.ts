/**
 * Adds the sample data to a new account: what is missing of the codes by calls to the core, the scans through the log.
 *
 *   node local/sample/main.ts ACCOUNT UNTIL      `acct_…`; the end of the scans, in ms since 1970
 *
 * It reads the variables of the core, is started by `npm start`, and may be interrupted and started again.
 */
import { createClients } from '../../cli/clients.ts';
import { METADATA } from '../../common/contract/metadata.ts';
import { readKafkaSecurity } from '../../common/log/kafka-variables.ts';
import { openLog } from '../../common/log/open.ts';
import { openLogger } from '../../common/runtime/logger.ts';
import { readVariables } from '../../common/runtime/variables.ts';
import { CORE_VARIABLES } from '../../src/config.ts';
import { LOOPBACK } from '../free-port.ts';
import { createContent } from './create-content.ts';
import { publishScans } from './publish-scans.ts';
import { scansOf } from './scans.ts';

const [account = '', until] = process.argv.slice(2);
const config = readVariables(CORE_VARIABLES, process.env);
const logger = openLogger(config.LOG_LEVEL, { process: 'sample' });
const core = createClients({
  baseUrl: `http://${LOOPBACK}:${config.CORE_PORT}`,
  headers: {
    authorization: `Bearer ${config.SERVICE_TOKEN[0]}`,
    [METADATA.actor]: 'sample data',
    [METADATA.account]: account,
  },
});
const codes = await createContent(core);
logger.info({ codes: codes.length }, 'the codes of the sample exist');
const log = await openLog({
  kafkaBrokers: config.KAFKA_BROKERS,
  kafkaSecurity: readKafkaSecurity(config),
  kafkaPrefix: config.KAFKA_PREFIX,
  databaseUrl: config.DATABASE_URL,
  clientId: 'signpost-sample',
  logger,
});
try {
  const scans = scansOf({ account, host: new URL(config.PUBLIC_URL).hostname, codes, until: Number(until) });
  await publishScans(log, account, scans);
  logger.info({ scans: scans.length }, 'the scans of the sample are in the log');
} finally {
  await log.close();
}
