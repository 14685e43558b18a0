import { type Command, CommanderError, type Option } from 'commander';
import { OperatorError } from '../common/runtime/operator-error.ts';
import manifest from '../package.json' with { type: 'json' };
import { UsageError } from './core.ts';
import { EXIT_CODES, exitUnfulfilled } from './exit-codes.ts';
import { withoutControlCharacters } from './output.ts';
import { StrictCommand } from './strict-command.ts';

/** Commands that share their first word. */
interface Group {
  readonly description: string;
  /** Imports the module of the commands; the result adds them to their group. */
  load(): Promise<(group: Command) => void>;
}

/**
 * All groups. A module is imported only if one of its commands is used: importing all of them, with the protobuf
 * messages that they need, takes five times as long as `--help`.
 */
const GROUPS: Readonly<Record<string, Group>> = {
  account: {
    description: 'manage accounts: plans, usage, audit log',
    load: async () => (await import('./account.ts')).accountCommands,
  },
  key: {
    description: 'manage the API key of an account',
    load: async () => (await import('./key.ts')).keyCommands,
  },
  member: {
    description: 'manage the team of an account',
    load: async () => (await import('./member.ts')).memberCommands,
  },
  dashboard: {
    description: 'let members into the dashboard',
    load: async () => (await import('./dashboard.ts')).dashboardCommands,
  },
  code: {
    description: 'create, change, delete and restore codes; write their images; show their scans',
    load: async () => (await import('./code.ts')).codeCommands,
  },
  target: {
    description: 'change what scans lead to: rules, schedules, splits, versions, previews',
    load: async () => (await import('./target.ts')).targetCommands,
  },
  folder: {
    description: 'list, rename, merge and delete folders',
    load: async () => (await import('./label.ts')).folderCommands,
  },
  tag: {
    description: 'list, rename, merge and delete tags',
    load: async () => (await import('./label.ts')).tagCommands,
  },
  batch: {
    description: 'export the images of a batch for printing',
    load: async () => (await import('./batch.ts')).batchCommands,
  },
  domain: {
    description: 'manage custom domains',
    load: async () => (await import('./domain.ts')).domainCommands,
  },
  events: {
    description: 'audit and republish events and routes in the log',
    load: async () => (await import('./events.ts')).eventsCommands,
  },
  scans: {
    description: 'audit, republish and delete scans',
    load: async () => (await import('./scans.ts')).scansCommands,
  },
  webhook: {
    description: 'manage webhook endpoints and their deliveries',
    load: async () => (await import('./webhook.ts')).webhookCommands,
  },
};

/** These need the commands of all groups. */
const NEED_ALL = ['completion', 'help'];

const HELP = `
Variables:
  CORE_PORT, CORE_HOST      the core's address (8081, 127.0.0.1)
  SERVICE_TOKEN             the token for the core; default: the token of a local run in DATA_DIR (.signpost)
  CORE_CA                   PEM file of the CA of the core’s certificate; enables TLS
  CORE_CERT, CORE_KEY       PEM files of a client certificate to use instead of a token
  DASHBOARD_URL             the dashboard's address, with which links to it begin; default: on this machine, at the
                            port DASHBOARD_PORT (8090)
  NO_COLOR                  if set, nothing is coloured; output that is not a terminal never is
  COLUMNS                   the width of tables and charts; default: the terminal’s

Exit codes:
  0  success
  1  the core rejected the call or is unavailable; the reason is on standard error
  2  invalid usage; nothing was changed
  3  the command was executed, but the request is not, or only partly, fulfilled: an audit found differences, a domain
     is not verified, a webhook was not delivered, a label was not applied, rows of a batch are still pending, targets
     of a change were not set, or the result could not be written to standard output

Examples:
  $ npm run signpost -- account create --name Trattoria --plan business
  $ npm run signpost -- code create --account acct_… --target-url https://example.com/menu
  $ npm run --silent signpost -- --json account list`;

/**
 * Creates the program with the commands of the group that the arguments `given` name, or without any with all commands.
 */
export async function createProgram(given?: readonly string[]): Promise<Command> {
  const word = given && (given.find((argument) => !argument.startsWith('-')) ?? '');
  const program = new StrictCommand('signpost')
    .description('The command line of Signpost. It calls the core on CORE_PORT (8081).')
    .option('--json', 'print one JSON value and nothing else')
    .version(manifest.version, '--version', 'print the version')
    .showHelpAfterError('(add --help for usage)')
    .addHelpText('after', HELP)
    // Instead of `process.exit`, by which help that could not be written would be lost without a word.
    .exitOverride();
  const isComplete = word === undefined || NEED_ALL.includes(word);
  for (const [name, { description, load }] of Object.entries(GROUPS)) {
    const group = program.command(name).description(description);
    if (isComplete || name === word) (await load())(group);
  }
  const { completionCommand } = await import('./completion.ts');
  completionCommand(program);
  // `--json` is accepted anywhere, also after the subcommand.
  for (const group of program.commands)
    for (const command of group.commands) {
      rejectContradictions(command.option('--json', 'print JSON'));
      rejectRepetitions(command);
      rejectLostValues(command, given ?? []);
      const required = command.options.filter(({ mandatory }) => mandatory).map(({ flags }) => flags);
      command.usage([...required, '[options]'].join(' '));
    }
  return program;
}

/** Makes `--name x --no-name` an error in either order: commander would take the last one without a word. */
function rejectContradictions(command: Command): void {
  for (const clearing of command.options.filter(({ negate }) => negate)) {
    const setting = command.options.find(({ long }) => long === clearing.long?.replace('--no-', '--'));
    const given = new Set<Option>();
    for (const option of [setting, clearing])
      if (option)
        command.on(`option:${option.name()}`, () => {
          if (given.add(option).size === 2)
            command.error(`error: option '${setting?.flags}' cannot be used with option '${clearing.flags}'`);
        });
  }
}

/** Options that may be given several times, beside the variadic ones: their parsers keep the former values. */
const REPEATABLE = ['--link', '--events', '--days'];

/** Rejects `--id qr_1 --id qr_2`: commander would take the last one without a word. */
function rejectRepetitions(command: Command): void {
  for (const option of command.options) {
    if (!option.required || option.variadic || REPEATABLE.includes(option.long ?? '')) continue;
    let given = 0;
    command.on(`option:${option.name()}`, () => {
      given += 1;
      if (given === 2) command.error(`error: option '${option.flags}' cannot be given twice`);
    });
  }
}

/** Options whose value may be empty: a text that may have been written, and details of a scan. */
const MAY_BE_EMPTY = ['--text', '--note', '--query', '--visitor'];

/**
 * Rejects `--folder "$FOLDER"` without that variable, which must neither remove something nor count as absent, and
 * without the quotation marks, by which the next option becomes the value.
 */
function rejectLostValues(command: Command, given: readonly string[]): void {
  for (const option of command.options.filter(({ required }) => required)) {
    const mayBeEmpty = MAY_BE_EMPTY.includes(option.long ?? '');
    command.on(`option:${option.name()}`, (value: string) => {
      if (value === '' && !mayBeEmpty) command.error(`error: option '${option.flags}' must not be empty`);
      const joined = `${option.long}=${value}`;
      if (/^(--|-h$)/.test(value) && !given.includes(joined))
        command.error(`error: option '${option.flags}' needs a value; if ${value} is it, write ${joined}`);
    });
  }
}

/** Executes a command line, the arguments of a process; sets the process's exit code. */
export async function runProgram(argv: readonly string[]): Promise<void> {
  const program = await createProgram(argv.slice(2));
  let running = program;
  process.stdout.on('error', reportLostOutput);
  program.hook('preAction', (_, action) => {
    running = action;
    if (action.opts<{ json?: boolean }>().json) program.setOptionValue('json', true);
  });
  try {
    await program.parseAsync(argv);
  } catch (error) {
    if (error instanceof CommanderError) {
      // It has printed help, the version or what is wrong with the command line.
      if (error.exitCode !== 0) process.exitCode = EXIT_CODES.usage;
      return;
    }
    console.error(withoutControlCharacters(await sentenceOf(error, running)));
    process.exitCode = error instanceof UsageError ? EXIT_CODES.usage : EXIT_CODES.failed;
  }
}

/** `console.log` ignores errors, for example of a full disk: without this, a result would be lost without a word. */
function reportLostOutput({ code }: NodeJS.ErrnoException): void {
  // A reader such as `head` closes a pipe when it has read enough.
  if (code === 'EPIPE') return;
  console.error(`The result can't be written to standard output (${code}).`);
  exitUnfulfilled();
}

async function sentenceOf(error: unknown, running: Command): Promise<string> {
  if (error instanceof OperatorError) return error.message;
  const { rejectionSentence } = await import('./rejection.ts');
  return rejectionSentence(error, running);
}
