import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { Command } from 'commander';
import type { TopicAudit } from '../proto/gen/signpost/events/v1/events_pb.ts';
import { connectCore, there } from './core.ts';
import { example, time } from './options.ts';
import { jsonWanted, print, printRecord, table } from './output.ts';

/** `events …`: whether Kafka, or the log in Postgres, has what was published. */
export function eventsCommands(program: Command): void {
  const json = jsonWanted(program);
  const events = program.command('events').description('events and routes on their way to the log');
  const since = (command: Command) =>
    command.option('--since <time>', 'leave out what is older such as 2026-11-20T09:00:00Z', time);

  since(example(events.command('audit'), 'events audit --since 2027-01-31T02:00:00Z'))
    .description('compare what was published, as far as Postgres keeps it, with what the log has')
    .action(async ({ since }: { since?: Date }) => {
      const core = await connectCore(process.env);
      const audit = await core.events.auditEvents(since === undefined ? {} : { since: timestampFromDate(since) });
      const shown = {
        kept_from: audit.keptFrom ? timestampDate(audit.keptFrom).toISOString() : null,
        events: figures(there(audit.events)),
        routes: figures(there(audit.routes)),
      };
      print(json(), shown, () => {
        const rows = [
          { topic: 'events', ...shown.events },
          { topic: 'routes', ...shown.routes },
        ];
        return `${table(rows)}\n\nPostgres keeps what was published since ${shown.kept_from ?? 'now'}.`;
      });
    });

  since(example(events.command('republish'), 'events republish --since 2027-01-31T02:00:00Z'))
    .description('publish events again that the log lacks, with the ids that they had, and routes as they are now')
    .option('--all', 'also what the log has')
    .action(async ({ since, all }: { since?: Date; all?: true }) => {
      const core = await connectCore(process.env);
      const { events, routes } = await core.events.republishEvents({
        ...(since !== undefined && { since: timestampFromDate(since) }),
        all: all ?? false,
      });
      printRecord(json(), { events: Number(events), routes: Number(routes) });
    });
}

function figures({ published, found, missing }: TopicAudit) {
  return { published: Number(published), found: Number(found), missing: Number(missing) };
}
