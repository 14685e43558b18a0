import type { Command } from 'commander';
import { type AnalyticsJson, analyticsJson } from '../common/contract/analytics-json.ts';
import { PERIOD_DAYS } from '../common/contract/ranges.ts';
import { requiredField } from '../common/contract/required-field.ts';
import type { GetCodeAnalyticsResponse } from '../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { accent, bar, grouped, sparkline } from './charts.ts';
import { connectCore } from './core.ts';
import { example, ofAccount, shownRange, wholeNumberIn } from './options.ts';
import { jsonOption, onOneLine, outputWidth, printStyled, table } from './output.ts';

/** The widest sparkline, and the widest bar. */
const SPARKLINE_WIDTH = 60;
const BAR_WIDTH = 30;

/** Entries of a breakdown that people are shown; `--json` prints up to 50. */
const MOST_SHOWN = 8;

/** `code analytics`: shows the scans of a code. */
export function codeAnalyticsCommand(code: Command): void {
  const json = jsonOption(code);
  const analytics = ofAccount(code.command('analytics'))
    .description(
      'show the scans of a code: by day, country, device, operating system, browser, referrer and rule of its target',
    )
    .requiredOption('--id <id>', 'qr_…')
    .option(
      '--period <days>',
      `days of the window, which ends today (UTC), ${shownRange(PERIOD_DAYS)}`,
      wholeNumberIn(PERIOD_DAYS),
    );
  example(analytics, 'code analytics --account acct_… --id qr_… --period 7').action(
    async ({ account, id, period }: { account: string; id: string; period?: number }) => {
      const { analytics, codes } = await connectCore(process.env, account);
      const [read, { code: found }] = await Promise.all([
        analytics.getCodeAnalytics({ id, ...(period === undefined ? {} : { period }) }),
        codes.getCode({ id }),
      ]);
      const { name, scanUrl } = requiredField(found, 'code');
      const title = [onOneLine(name ?? ''), scanUrl].filter(Boolean).join('  ');
      const shown = withTargets(read);
      printStyled(json(), shown, () => `${title}\n${report(shown)}`);
    },
  );
}

/** Scans by the version, rule and variant of the code's target; none if it has never been changed. */
interface WithTargets extends AnalyticsJson {
  readonly targets?: readonly { version: number; rule: number | null; variant: string | null; scans: number }[];
}

function withTargets(read: GetCodeAnalyticsResponse): WithTargets {
  const targets = (read.figures?.targets ?? []).map(({ version, rule, variant, scans }) => ({
    version,
    rule: rule || null,
    variant: variant || null,
    scans: Number(scans),
  }));
  return { ...analyticsJson(read), ...(targets.length > 0 ? { targets } : {}) };
}

function report({
  total_scans,
  period,
  from,
  to,
  period_scans,
  unique_scans,
  breakdowns,
  targets = [],
}: WithTargets): string {
  const { days, countries, devices, operating_systems, browsers, referrers } = breakdowns;
  const window = `${period === 1 ? 'Today' : `Last ${period} days`} (${from} to ${to}, UTC)`;
  const summary = [
    `${counted(total_scans, 'scan')} in total`,
    '',
    `${window}: ${counted(period_scans, 'scan')}, ${counted(unique_scans, 'visitor')}`,
  ];
  if (period_scans === 0) return summary.join('\n');
  return [
    ...summary,
    ...byDay(days),
    ...breakdown(
      'Countries',
      countries.map(({ country, scans }) => [country, scans]),
    ),
    ...breakdown(
      'Devices',
      devices.map(({ device, scans }) => [device, scans]),
    ),
    ...breakdown(
      'Operating systems',
      operating_systems.map(({ operating_system, scans }) => [operating_system, scans]),
    ),
    ...breakdown(
      'Browsers',
      browsers.map(({ browser, scans }) => [browser, scans]),
    ),
    ...breakdown(
      'Referrers',
      referrers.map(({ referrer, scans }) => [referrer, scans]),
    ),
    ...(targets.length > 0
      ? breakdown(
          'Targets',
          targets.map((target) => [targetName(target), target.scans]),
        )
      : []),
    '',
    'A visitor who scans on two days counts twice.',
  ].join('\n');
}

function targetName({ version, rule, variant }: NonNullable<WithTargets['targets']>[number]): string {
  // Of all entries that the core does not list.
  if (version === 0) return 'others';
  const decided = rule === null ? 'no rule' : `rule ${rule}`;
  return `version ${version}, ${decided}${variant === null ? '' : `, ${variant}`}`;
}

function byDay(days: AnalyticsJson['breakdowns']['days']): string[] {
  const { sums, size } = grouped(
    days.map(({ scans }) => scans),
    Math.min(SPARKLINE_WIDTH, outputWidth() - 2),
  );
  const most = Math.max(...days.map(({ scans }) => scans));
  const best = days.findLast(({ scans }) => scans === most);
  const unit = size === 1 ? 'A character is a day' : `A character is ${size} days`;
  return [accent(sparkline(sums)), `${unit}; most scans: ${figure(most)} on ${best?.date}`];
}

/** A bar per value, most scans first. */
function breakdown(title: string, values: readonly (readonly [string, number])[]): string[] {
  const shown = values.slice(0, MOST_SHOWN);
  const rest = values.slice(MOST_SHOWN).reduce((sum, [, scans]) => sum + scans, 0);
  const rows = rest === 0 ? shown : [...shown, [`${values.length - MOST_SHOWN} others`, rest] as const];
  const all = rows.reduce((sum, [, scans]) => sum + scans, 0);
  const most = Math.max(...rows.map(([, scans]) => scans));
  const widest = figure(most).length;
  const [, ...lines] = table(
    rows.map(([value, scans]) => ({
      value,
      scans: figure(scans).padStart(widest),
      share: `${Math.round((scans / all) * 100)} %`.padStart(5),
      bar: bar(scans, most, BAR_WIDTH),
    })),
  ).split('\n');
  return ['', title, ...lines.map((line) => line.replace(/[█▏▎▍▌▋▊▉]+$/, accent))];
}

function counted(count: number, what: string): string {
  return `${figure(count)} ${what}${count === 1 ? '' : 's'}`;
}

function figure(value: number): string {
  return value.toLocaleString('en');
}
