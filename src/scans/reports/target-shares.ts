import { type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import { dayOf } from '../days.ts';
import { scansOf } from './code-selection.ts';
import { type FigureQuery, hourParts } from './scan-figures.ts';

/** Maximum entries, the one of all others included: what 4 versions of the largest policy can decide. */
const MAX_ENTRIES = 1_000;

/**
 * Scans that a version, rule and variant of a code's target decided; version 0: those of all entries that are not
 * listed.
 */
export interface TargetShare {
  readonly version: number;
  readonly rule: number;
  readonly variant: string;
  readonly scans: bigint;
}

type TargetRow = Omit<TargetShare, 'scans'> & { readonly scans: string };

const FOLD = `
   select version, rule, variant, sum(scans)::text as scans
   from (
     select case when listed then version else 0 end as version, case when listed then rule else 0 end as rule,
            case when listed then variant else '' end as variant, scans
     from (
       select *, count(*) over () <= ${MAX_ENTRIES}
                 or row_number() over (order by scans desc, version desc, rule, variant) < ${MAX_ENTRIES} as listed
       from (
         select version, rule, variant, sum(scans) as scans from counted group by 1, 2, 3
       ) summed
     ) ranked
   ) folded
   group by 1, 2, 3
   order by sum(scans) desc, version desc, rule, variant`;
const DAYS = `
     select version, rule, variant, t.scans
     from scan_targets t
     where t.account_id = $1 and t.code_id = $2 and t.day between $3 and $4`;
/** Index: primary key of scan_targets. */
const readTargets = statement<TargetRow>('scans_read_targets', `with counted as (${DAYS}) ${FOLD}`);
/** The same, and for partial days the scans themselves. Index: scans_of_code, two ranges. */
const readTargetsByHour = statement<TargetRow>(
  'scans_read_targets_by_hour',
  `with counted as (
     ${DAYS}
     union all
     select s.target_version, s.target_rule, s.target_variant, 1
     from (values ($5::timestamptz, $6::timestamptz), ($7, $8)) as part (since, until)
       cross join ${scansOf('$2')} s
     where s.account_id = $1 and s.target_version is not null
   ) ${FOLD}`,
);

/**
 * The scans of a code (UUID) in the window of a query of days or hours by what decided where they lead, most scans
 * first.
 */
export async function targetShares(
  on: Queryable,
  codeId: string,
  query: FigureQuery,
  by: 'days' | 'hours',
): Promise<TargetShare[]> {
  const { accountId, from, to } = query;
  const rows = await (by === 'days'
    ? run(on, readTargets, [accountId, codeId, dayOf(from), dayOf(to)])
    : run(on, readTargetsByHour, [accountId, codeId, ...hourParts(query)]));
  return rows.map(({ scans, ...row }) => ({ ...row, scans: BigInt(scans) }));
}
