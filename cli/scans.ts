import { join } from 'node:path';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { openLogger } from '../common/runtime/logger.ts';
import { readVariables } from '../common/runtime/variables.ts';
import type { Reshipped } from '../gateway/redirect/spool/reship-scans.ts';
import { connectCore } from './core.ts';
import { example, ofAccount, time } from './options.ts';
import { fields, jsonWanted, print, printRecord, table } from './output.ts';

/** `scans …`: what became of scans on their way into analytics. */
export function scansCommands(program: Command): void {
  const json = jsonWanted(program);
  const today = day(new Date().toISOString().slice(0, 10));
  const dayOption = (flags: string, what: string) => new Option(flags, what).argParser(day).default(today, 'today');
  const scans = program.command('scans').description('scans on their way into analytics');

  example(scans.command('audit'), 'scans audit --from 2027-01-01 --to 2027-01-31')
    .description('how many scans of some days (UTC) got how far, and whether every counter tells what the scans tell')
    .addOption(dayOption('--from <day>', 'first day, YYYY-MM-DD'))
    .addOption(dayOption('--to <day>', 'last day, included'))
    .action(async ({ from, to }: { from: number; to: number }) => {
      const core = await connectCore(process.env);
      const audit = await core.scans.auditScans({ from: timestampFromMs(from), to: timestampFromMs(to) });
      const figures = {
        answered: Number(audit.answered),
        spooled: Number(audit.spooled),
        published: Number(audit.published),
        recorded: Number(audit.recorded),
        duplicates: Number(audit.duplicates),
        dead_lettered: Number(audit.deadLettered),
        deleted: Number(audit.deleted),
        waiting: Number(audit.waiting),
        rows: Number(audit.rows),
        archived: Number(audit.archived),
        counted: Number(audit.counted),
      };
      const differences = audit.differences.map(({ codeId, day, counter, expected, counted }) => ({
        code_id: codeId ?? null,
        day: day ?? null,
        counter,
        expected: Number(expected),
        counted: Number(counted),
      }));
      print(json(), { ...figures, differences }, () => {
        const agreement = differences.length === 0 ? 'Every counter tells what the scans tell.' : table(differences);
        return `${fields(figures)}\n\n${agreement}`;
      });
    });

  example(scans.command('reship'), 'scans reship --since 2027-01-31T02:00:00Z')
    .description('on a gateway’s machine: publish scans again that it keeps for SPOOL_RETENTION_HOURS')
    .requiredOption('--since <time>', 'leave out what is older, such as 2026-11-20T09:00:00Z', time)
    .addHelpText('after', '\nIt needs DATA_DIR, DATABASE_URL and KAFKA_… as the gateway has them, and no core.')
    .action(async ({ since }: { since: Date }) => {
      printRecord(json(), { ...(await reship(since.getTime())) });
    });

  ofAccount(scans.command('delete'))
    .description('delete every scan of an account and what was counted of it, archives included')
    .action(async ({ account }: { account: string }) => {
      const core = await connectCore(process.env, account);
      await core.scans.deleteAccountScans({});
      print(json(), { account_id: account, deleted: true }, () => `The scans of ${account} are gone.`);
    });
}

/** The command line loads a gateway's modules only for this. */
async function reship(since: number): Promise<Reshipped> {
  const [{ reshipScans }, { SHIPPED }, { openLog }, { KAFKA_VARIABLES, readKafkaSecurity }, { GATEWAY_VARIABLES }] =
    await Promise.all([
      import('../gateway/redirect/spool/reship-scans.ts'),
      import('../gateway/redirect/spool/shipped-segments.ts'),
      import('../common/log/open.ts'),
      import('../common/log/kafka-variables.ts'),
      import('../gateway/config.ts'),
    ]);
  const { DATA_DIR, KAFKA_BROKERS, DATABASE_URL } = GATEWAY_VARIABLES;
  const config = readVariables({ DATA_DIR, KAFKA_BROKERS, DATABASE_URL, ...KAFKA_VARIABLES }, process.env);
  const log = openLog({
    kafkaBrokers: config.KAFKA_BROKERS,
    kafkaSecurity: readKafkaSecurity(config),
    databaseUrl: config.DATABASE_URL,
    clientId: 'signpost-reship',
    logger: openLogger('silent', {}),
  });
  try {
    return await reshipScans({ folder: join(config.DATA_DIR, SHIPPED), since, log });
  } finally {
    await log.close();
  }
}

/** A UTC day as ms since 1970. */
function day(text: string): number {
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw new InvalidArgumentError('It must be a day, YYYY-MM-DD.');
  return time;
}
