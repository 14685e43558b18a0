import { useMemo, useState } from 'react';

/** Which codes are selected: some, or all that match the filters but some. */
export interface Selection {
  readonly all: boolean;
  /** The selected codes' ids; with `all`, those that are not selected. */
  readonly ids: ReadonlySet<string>;
}

const NONE: Selection = { all: false, ids: new Set() };

export interface Selecting {
  readonly selection: Selection;
  isSelected(id: string): boolean;
  /** How many codes are selected of `total`. */
  count(total: number): number;
  toggle(id: string): void;
  add(ids: Iterable<string>): void;
  all(): void;
  clear(): void;
}

/** The selection of a list; another list, by its `key`, begins without one. */
export function useSelection(key: string): Selecting {
  const [held, setHeld] = useState({ key, selection: NONE });
  const selection = held.key === key ? held.selection : NONE;
  return useMemo(() => {
    const set = (next: Selection) => setHeld({ key, selection: next });
    return {
      selection,
      isSelected: (id) => selection.ids.has(id) !== selection.all,
      count: (total) => (selection.all ? Math.max(0, total - selection.ids.size) : selection.ids.size),
      toggle: (id) => {
        const ids = new Set(selection.ids);
        if (!ids.delete(id)) ids.add(id);
        set({ ...selection, ids });
      },
      add: (added) => {
        const ids = new Set(selection.ids);
        for (const id of added)
          if (selection.all) ids.delete(id);
          else ids.add(id);
        set({ ...selection, ids });
      },
      all: () => set({ all: true, ids: new Set() }),
      clear: () => set(NONE),
    };
  }, [key, selection]);
}
