import Table from 'cli-table3';
import type { FaultWindow, Finding, Ledger } from './ledger.ts';

/** The results of one fault, over all its injections. */
interface Row {
  readonly fault: string;
  readonly windows: FaultWindow[];
  readonly findings: Finding[];
}

/** Findings that fail a run. */
const FAILURES = ['lost', 'duplicated', 'undone', 'wrong'] as const;

/** The table of a run: a row for each fault, and a total. */
export function resultTable(ledger: Ledger): string {
  const rows = new Map<string, Row>();
  const rowOf = (fault: string): Row => {
    const row = rows.get(fault) ?? { fault, windows: [], findings: [] };
    rows.set(fault, row);
    return row;
  };
  for (const window of ledger.windows) rowOf(window.fault).windows.push(window);
  for (const finding of ledger.findings) rowOf(ledger.windowAt(finding.at)?.fault ?? 'no fault').findings.push(finding);
  const documented = ['documented scans', 'of the last s'];
  const table = new Table({
    head: [
      ...['fault', 'times', 'operations', 'unanswered', '503', ...FAILURES],
      ...documented,
      ...['longest wait s', 'recovery s'],
    ],
    style: { head: [], border: [], compact: true },
  });
  for (const row of rows.values()) table.push(cells(row));
  table.push(cells({ fault: 'all', windows: ledger.windows, findings: ledger.findings }));
  return table.toString();
}

function cells({ fault, windows, findings }: Row): (string | number)[] {
  const sum = (of: (window: FaultWindow) => number) => windows.reduce((total, each) => total + of(each), 0);
  const recovered = windows.map(({ recoveredMs }) => recoveredMs ?? Number.POSITIVE_INFINITY);
  const documented = findings.filter(({ kind }) => kind === 'documented');
  return [
    fault,
    windows.length,
    sum(({ operations }) => operations),
    sum(({ unanswered }) => unanswered),
    sum(({ unavailable }) => unavailable),
    ...FAILURES.map((kind) => findings.filter((finding) => finding.kind === kind).length),
    documented.length,
    seconds(documented.map(({ ageMs = 0 }) => ageMs)),
    seconds(windows.map(({ longestMs }) => longestMs)),
    seconds(recovered),
  ];
}

/** The longest of durations in ms, in s; empty if there are none. */
function seconds(durations: readonly number[]): string {
  return durations.length === 0 ? '' : (Math.max(...durations) / 1_000).toFixed(1);
}
