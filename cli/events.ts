import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { Command } from 'commander';
import { requiredField } from '../common/contract/required-field.ts';
import type { TopicAudit } from '../proto/gen/signpost/events/v1/events_pb.ts';
import { connectCore } from './core.ts';
import { exitUnfulfilled } from './exit-codes.ts';
import { example, time } from './options.ts';
import { jsonOption, print, printRecord, table } from './output.ts';
import { withProgress } from './progress.ts';

/** `events …`: compares published events with the log, and publishes missing ones again. */
export function eventsCommands(events: Command): void {
  const json = jsonOption(events);
  const since = (command: Command) =>
    command.option('--since <time>', 'ignore older records, such as 2026-11-20T09:00:00Z', time);

  since(example(events.command('audit'), 'events audit --since 2027-01-31T02:00:00Z'))
    .description('compare published records, as far as Postgres keeps them, with the log')
    .action(async ({ since }: { since?: Date }) => {
      const core = await connectCore(process.env);
      const audit = await withProgress({ json: json(), what: 'Reading the topics' }, () =>
        core.events.auditEvents(since === undefined ? {} : { since: timestampFromDate(since) }),
      );
      const shown = {
        kept_from: audit.keptFrom ? timestampDate(audit.keptFrom).toISOString() : null,
        events: figures(requiredField(audit.events, 'events')),
        routes: figures(requiredField(audit.routes, 'routes')),
      };
      if (shown.events.missing + shown.routes.missing > 0) exitUnfulfilled();
      print(json(), shown, () => {
        const rows = [
          { topic: 'events', ...shown.events },
          { topic: 'routes', ...shown.routes },
        ];
        const kept = shown.kept_from ? `what was published since ${shown.kept_from}` : 'nothing of that time';
        return `${table(rows)}\n\nPostgres keeps ${kept}.`;
      });
    });

  since(example(events.command('republish'), 'events republish --since 2027-01-31T02:00:00Z'))
    .description('publish events missing in the log again, with their ids, and current routes')
    .option('--all', 'also publish records that the log has')
    .action(async ({ since, all }: { since?: Date; all?: true }) => {
      const core = await connectCore(process.env);
      const { events, routes } = await withProgress({ json: json(), what: 'Publishing' }, () =>
        core.events.republishEvents({
          ...(since !== undefined && { since: timestampFromDate(since) }),
          all: all ?? false,
        }),
      );
      printRecord(json(), { events: Number(events), routes: Number(routes) });
    });
}

function figures({ published, found, missing }: TopicAudit) {
  return { published: Number(published), found: Number(found), missing: Number(missing) };
}
