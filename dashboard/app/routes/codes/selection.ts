import { useMemo, useState } from 'react';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';

/** Which codes are selected: some, or all that match the filters but some. */
export interface Selection {
  readonly all: boolean;
  /** The selected codes by id, as they were then; with `all`, those that are not selected. */
  readonly codes: ReadonlyMap<string, Code>;
}

const NONE: Selection = { all: false, codes: new Map() };

export interface Selecting {
  readonly selection: Selection;
  isSelected(id: string): boolean;
  /** How many codes are selected of `total`. */
  count(total: number): number;
  toggle(code: Code): void;
  add(codes: Iterable<Code>): void;
  all(): void;
  clear(): void;
}

/** The selection of a list; another list, by its `key`, begins without one. */
export function useSelection(key: string): Selecting {
  const [held, setHeld] = useState({ key, selection: NONE });
  if (held.key !== key) setHeld({ key, selection: NONE });
  const selection = held.key === key ? held.selection : NONE;
  return useMemo(() => {
    // A range is added once its pages are loaded: to what is selected by then, and not to the selection of another
    // list.
    const change = (next: (selection: Selection) => Selection) =>
      setHeld((now) => (now.key === key ? { key, selection: next(now.selection) } : now));
    return {
      selection,
      isSelected: (id) => selection.codes.has(id) !== selection.all,
      count: (total) => (selection.all ? Math.max(0, total - selection.codes.size) : selection.codes.size),
      toggle: (code) =>
        change(({ all, codes }) => {
          const toggled = new Map(codes);
          if (!toggled.delete(code.id)) toggled.set(code.id, code);
          return { all, codes: toggled };
        }),
      add: (added) =>
        change(({ all, codes }) => {
          const joined = new Map(codes);
          for (const code of added)
            if (all) joined.delete(code.id);
            else joined.set(code.id, code);
          return { all, codes: joined };
        }),
      all: () => change(() => ({ all: true, codes: new Map() })),
      clear: () => change(() => NONE),
    };
  }, [key, selection]);
}
