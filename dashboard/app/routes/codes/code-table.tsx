// biome-ignore-all lint/a11y/useSemanticElements: a table of absolutely placed rows cannot be made of table elements.
// biome-ignore-all lint/a11y/useFocusableInteractive: the list has the focus and names its active row.
import { type KeyboardEvent, type MouseEvent, type RefObject, useEffect, useId, useState } from 'react';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { nameOfCode } from '../../data/code-names.ts';
import { useFormat } from '../../data/format.ts';
import { PHONE, useMedia } from '../../data/media.ts';
import { useMessages } from '../../messages/index.ts';
import { CodeCells } from './code-row.tsx';
import styles from './code-table.module.css';
import type { Selecting } from './selection.ts';
import { useVirtualRows } from './virtual-rows.ts';

const ROW_PX = 40;
/** On phones a row has three lines. */
const ENTRY_PX = 84;
const HEADER_PX = 40;

interface CodeTableProps {
  readonly list: RefObject<HTMLDivElement | null>;
  readonly total: number;
  readonly codeAt: (index: number) => Code | undefined;
  /** The rows to load: the first, and the one after the last. */
  readonly onShow: (first: number, last: number) => void;
  readonly selecting: Selecting;
  /** Whether codes can be selected: there is something to do with them. */
  readonly isSelectable: boolean;
  /** Selects the rows between two, both included; they may not all be loaded. */
  readonly onSelectRange: (from: number, to: number) => void;
  /** The code whose details are shown. */
  readonly openCode: string | undefined;
  readonly onOpen: (code: Code | undefined) => void;
}

/**
 * The list of codes, of which only the visible rows exist. One row is active, which the arrow keys move; the list
 * itself keeps the focus, so that Tab leads out of it whatever its length.
 */
export function CodeTable(props: CodeTableProps) {
  const { list: scroller, total, codeAt, onShow, selecting, isSelectable, onSelectRange, openCode, onOpen } = props;
  const { codes } = useMessages();
  const format = useFormat();
  const isPhone = useMedia(PHONE);
  const isPrinted = useMedia('print');
  const rowHeight = isPhone ? ENTRY_PX : ROW_PX;
  const headerHeight = isPhone ? 0 : HEADER_PX;
  const rows = useVirtualRows(scroller, { count: total, rowHeight, headerHeight });
  const [active, setActive] = useState(0);
  const [anchor, setAnchor] = useState(0);
  const id = useId();
  useEffect(() => onShow(rows.first, rows.last), [onShow, rows.first, rows.last]);
  const current = Math.min(active, total - 1);
  const isAll = selecting.count(total) === total;

  const moveTo = (index: number) => {
    const next = Math.max(0, Math.min(total - 1, index));
    setActive(next);
    rows.reveal(next);
    const code = codeAt(next);
    if (openCode !== undefined && code) onOpen(code);
    return next;
  };
  const toggle = (index: number, isRange: boolean) => {
    const code = codeAt(index);
    if (!isSelectable || !code) return;
    if (isRange) onSelectRange(anchor, index);
    else selecting.toggle(code);
    setAnchor(index);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== scroller.current) return;
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: current + rows.perPage,
      PageUp: current - rows.perPage,
      Home: 0,
      End: total - 1,
    };
    const next = steps[event.key];
    if (next !== undefined) {
      const reached = moveTo(next);
      if (event.shiftKey && isSelectable) onSelectRange(current, reached);
    } else if (event.key === ' ') toggle(current, event.shiftKey);
    else if (event.key === 'Enter') onOpen(codeAt(current));
    else if (event.key === 'Escape' && openCode !== undefined) onOpen(undefined);
    else if (event.key === 'Escape') selecting.clear();
    else if (event.key === 'a' && (event.ctrlKey || event.metaKey) && isSelectable) selecting.all();
    else return;
    event.preventDefault();
  };
  const onClick = (index: number, event: MouseEvent) => {
    setActive(index);
    scroller.current?.focus({ preventScroll: true });
    if (event.shiftKey) toggle(index, true);
    else if (event.ctrlKey || event.metaKey) toggle(index, false);
    else onOpen(codeAt(index));
  };

  const [first, last] = isPrinted ? [0, loadedRows(total, codeAt)] : [rows.first, rows.last];
  const shown = Array.from({ length: last - first }, (_, index) => first + index);
  // The active row stays in the document when it is scrolled out of sight: the list refers to it.
  if (current >= 0 && !isPrinted && !shown.includes(current)) shown.push(current);
  const { columns } = codes;
  return (
    <div
      ref={scroller}
      role="grid"
      tabIndex={0}
      aria-label={codes.list}
      aria-description={codes.keys}
      aria-rowcount={total + 1}
      aria-multiselectable={isSelectable}
      aria-activedescendant={`${id}-${current}`}
      className={isSelectable ? styles.selectable : styles.table}
      onKeyDown={onKeyDown}
    >
      <div role="row" aria-rowindex={1} className={styles.header}>
        {isSelectable && (
          <div role="columnheader" className={styles.select}>
            <input
              type="checkbox"
              aria-label={codes.selectAll}
              checked={isAll}
              ref={(box) => {
                if (box) box.indeterminate = !isAll && selecting.count(total) > 0;
              }}
              onChange={() => (isAll ? selecting.clear() : selecting.all())}
            />
          </div>
        )}
        <div role="columnheader" className={styles.image}>
          <span className="visually-hidden">{columns.image}</span>
        </div>
        {(['name', 'url', 'target', 'folder', 'tags', 'scans', 'state', 'changed'] as const).map((column) => (
          <div key={column} role="columnheader" className={styles[column]}>
            {columns[column]}
          </div>
        ))}
      </div>
      <div role="rowgroup" className={styles.rows} style={isPrinted ? undefined : { height: rows.height }}>
        {shown.map((index) => {
          const code = codeAt(index);
          const isSelected = code !== undefined && isSelectable && selecting.isSelected(code.id);
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys.
            <div
              key={index}
              id={`${id}-${index}`}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={isSelectable ? isSelected : undefined}
              data-active={index === current || undefined}
              data-open={(code && code.id === openCode) || undefined}
              className={styles.row}
              style={isPrinted ? undefined : { top: rows.topOf(index), height: rowHeight }}
              onClick={(event) => {
                if (!(event.target as Element).closest('button, input')) onClick(index, event);
              }}
            >
              {isSelectable && (
                <div role="gridcell" className={styles.select}>
                  <input
                    type="checkbox"
                    tabIndex={-1}
                    aria-label={codes.select(code ? nameOfCode(code) : '')}
                    checked={isSelected}
                    disabled={!code}
                    // Clicks with Shift select a range; `change` does not know of the key.
                    onClick={(event) => toggle(index, event.shiftKey)}
                    onChange={() => undefined}
                  />
                </div>
              )}
              {code ? <CodeCells code={code} /> : <div role="gridcell" className={styles.name} />}
            </div>
          );
        })}
      </div>
      {isPrinted && last < total && <p>{codes.partlyPrinted(format.number(last), format.number(total))}</p>}
    </div>
  );
}

/** How many rows are loaded without a gap, from the first one on: a printer does not wait for more. */
function loadedRows(total: number, codeAt: CodeTableProps['codeAt']): number {
  let rows = 0;
  while (rows < total && codeAt(rows)) rows += 1;
  return rows;
}
