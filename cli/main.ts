import { Code, ConnectError } from '@connectrpc/connect';
import { Command } from 'commander';
import { OperatorError } from '../common/runtime/operator-error.ts';
import manifest from '../package.json' with { type: 'json' };
import { accountCommands } from './account.ts';
import { batchCommands } from './batch.ts';
import { codeCommands } from './code.ts';
import { completionCommand } from './completion.ts';
import { UsageError } from './core.ts';
import { domainCommands } from './domain.ts';
import { eventsCommands } from './events.ts';
import { keyCommands } from './key.ts';
import { labelCommands } from './label.ts';
import { memberCommands } from './member.ts';
import { withoutControlCharacters } from './output.ts';
import { scansCommands } from './scans.ts';
import { webhookCommands } from './webhook.ts';

/** Exit codes: 1 if the core rejected the call or is unavailable, 2 for invalid usage. */
const FAILED = 1;
const USAGE_ERROR = 2;

const { version } = manifest;

const program = new Command('signpost')
  .description('The command line of Signpost, for tasks of a dashboard. It calls the core on CORE_PORT (8081).')
  .option('--json', 'print one JSON value and nothing else')
  .version(version, '--version', 'print the version')
  .showHelpAfterError('(add --help for usage)')
  .addHelpText(
    'after',
    `
Variables:
  CORE_PORT, CORE_HOST      the core's address (8081, 127.0.0.1)
  SERVICE_TOKEN             the token for the core; default: the token of a local run in DATA_DIR (.signpost)
  CORE_CA                   PEM file of the CA of the core’s certificate; enables TLS
  CORE_CERT, CORE_KEY       PEM files of a client certificate to use instead of a token

Exit codes:
  0  success
  1  the core rejected the call or is unavailable; the reason is on standard error
  2  invalid usage

Example:
  $ npm run signpost -- account create --name Trattoria --plan business
  $ npm run --silent signpost -- --json account list`,
  )
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : USAGE_ERROR));
accountCommands(program);
keyCommands(program);
memberCommands(program);
codeCommands(program);
labelCommands(program);
batchCommands(program);
domainCommands(program);
eventsCommands(program);
scansCommands(program);
completionCommand(program);
webhookCommands(program);
// `--json` is accepted anywhere, also after the subcommand.
for (const group of program.commands) for (const command of group.commands) command.option('--json', 'print JSON');
program.hook('preAction', (_, action) => {
  if (action.opts<{ json?: boolean }>().json) program.setOptionValue('json', true);
});

try {
  await program.parseAsync();
} catch (error) {
  console.error(withoutControlCharacters(sentenceOf(error)));
  process.exitCode = error instanceof UsageError ? USAGE_ERROR : FAILED;
}

function sentenceOf(error: unknown): string {
  if (error instanceof OperatorError) return error.message;
  if (!(error instanceof ConnectError)) return error instanceof Error ? error.message : String(error);
  // Errors of the core itself have details.
  const isUnreachable =
    error.details.length === 0 && (error.code === Code.Unavailable || error.rawMessage.includes('ECONNREFUSED'));
  return isUnreachable ? 'The core does not respond: is it running, and is CORE_PORT its port?' : error.rawMessage;
}
