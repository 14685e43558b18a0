import Table from 'cli-table3';
import type { FaultWindow, Finding, Ledger } from './ledger.ts';

/** What became of one fault, over all times that it was injected. */
interface Row {
  readonly fault: string;
  readonly windows: FaultWindow[];
  readonly found: Record<Finding['kind'], number>;
}

const KINDS = ['lost', 'duplicated', 'undone', 'wrong', 'documented'] as const;

/** The table of a run: a row for each fault, and one for all. */
export function resultTable(ledger: Ledger): string {
  const rows = new Map<string, Row>();
  const rowOf = (fault: string): Row => {
    const row = rows.get(fault) ?? {
      fault,
      windows: [],
      found: { lost: 0, duplicated: 0, undone: 0, wrong: 0, documented: 0 },
    };
    rows.set(fault, row);
    return row;
  };
  for (const window of ledger.windows) rowOf(window.fault).windows.push(window);
  for (const { kind, at } of ledger.findings) rowOf(ledger.windowAt(at)?.fault ?? 'no fault').found[kind]++;
  const table = new Table({
    head: ['fault', 'times', 'operations', 'unanswered', '503', ...KINDS, 'longest wait s', 'recovery s'],
    style: { head: [], border: [], compact: true },
  });
  const all: Row = {
    fault: 'all',
    windows: ledger.windows,
    found: { lost: 0, duplicated: 0, undone: 0, wrong: 0, documented: 0 },
  };
  for (const row of rows.values()) {
    table.push(cells(row));
    for (const kind of KINDS) all.found[kind] += row.found[kind];
  }
  table.push(cells(all));
  return table.toString();
}

function cells({ fault, windows, found }: Row): (string | number)[] {
  const sum = (of: (window: FaultWindow) => number) => windows.reduce((total, each) => total + of(each), 0);
  const longest = Math.max(0, ...windows.map(({ longestMs }) => longestMs));
  const recovered = windows.map(({ recoveredMs }) => recoveredMs ?? Number.POSITIVE_INFINITY);
  return [
    fault,
    windows.length,
    sum(({ operations }) => operations),
    sum(({ unanswered }) => unanswered),
    sum(({ unavailable }) => unavailable),
    ...KINDS.map((kind) => found[kind]),
    (longest / 1_000).toFixed(1),
    recovered.length === 0 ? '' : (Math.max(...recovered) / 1_000).toFixed(1),
  ];
}
