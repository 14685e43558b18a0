import { Code, ConnectError } from '@connectrpc/connect';
import { Command } from 'commander';
import { OperatorError } from '../common/runtime/operator-error.ts';
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
import { harmless } from './output.ts';
import { scansCommands } from './scans.ts';
import { webhookCommands } from './webhook.ts';

/** Exit codes: 1 for what the core refused or could not do, 2 for what was typed wrong. */
const REFUSED = 1;
const MISUSED = 2;

const program = new Command('signpost')
  .description('Signpost from the command line: what a dashboard would do. It calls the core on CORE_PORT (8081).')
  .option('--json', 'print one JSON value and nothing else')
  .showHelpAfterError('(add --help for what it takes)')
  .addHelpText(
    'after',
    `
Variables:
  CORE_PORT, CORE_HOST      where the core is (8081, 127.0.0.1)
  SERVICE_TOKEN             what opens it; else the token in DATA_DIR (.signpost), where a local run keeps it
  CORE_CA                   PEM file of the authority that signed the core’s certificate: calls it over TLS
  CORE_CERT, CORE_KEY       PEM files of a certificate to show instead of a token

Exit codes:
  0  done
  1  the core refused it, or does not answer; the sentence is on standard error
  2  something was typed wrong

Example:
  $ npm run signpost -- account create --name Trattoria --plan business
  $ npm run --silent signpost -- --json account list`,
  )
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : MISUSED));
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
// `--json` may stand anywhere, also behind the subcommand.
for (const group of program.commands) for (const command of group.commands) command.option('--json', 'print JSON');
program.hook('preAction', (_, action) => {
  if (action.opts<{ json?: boolean }>().json) program.setOptionValue('json', true);
});

try {
  await program.parseAsync();
} catch (error) {
  console.error(harmless(sentenceOf(error)));
  process.exitCode = error instanceof UsageError ? MISUSED : REFUSED;
}

function sentenceOf(error: unknown): string {
  if (error instanceof OperatorError) return error.message;
  if (!(error instanceof ConnectError)) return error instanceof Error ? error.message : String(error);
  // What the core says itself comes with details.
  const nobody = error.details.length === 0;
  const away = nobody && (error.code === Code.Unavailable || error.rawMessage.includes('ECONNREFUSED'));
  return away ? 'The core does not answer: is it running, and is CORE_PORT its port?' : error.rawMessage;
}
