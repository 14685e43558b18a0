import type { UseQueryResult } from '@tanstack/react-query';
import { useNavigate, useRouter } from '@tanstack/react-router';
import { ChevronDown, Search, X } from 'lucide-react';
import { memo, useEffect, useMemo, useRef, useState } from 'react';
import { Input, SearchField } from 'react-aria-components';
import { Button, IconButton } from '../../components/button.tsx';
import { Picker } from '../../components/picker.tsx';
import type { Option } from '../../components/select.tsx';
import { useErrorText } from '../../data/error-text.ts';
import { useFormat } from '../../data/format.ts';
import { useFolders, useTags } from '../../data/labels.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './filters.module.css';
import { type CodesSearch, KINDS, STATES } from './search.ts';

/** After how long without typing the list is searched, in ms. */
const TYPED_MS = 250;

const NO_FILTERS = { q: undefined, folder: undefined, tags: undefined, state: undefined, kind: undefined };

/** Search and filters above the list; each is in the address. Not rendered again while the list is scrolled. */
export const Filters = memo(function Filters({ search }: { readonly search: CodesSearch }) {
  const { codes } = useMessages();
  const format = useFormat();
  const set = useSetSearch();
  const folders = useFolders();
  const tags = useTags();
  const element = useRef<HTMLElement>(null);
  // An account has up to 10,000 of each.
  const options = useMemo(() => {
    const counted = ({ id, name, codeCount }: { id: string; name: string; codeCount: bigint }) => ({
      id,
      label: name,
      description: codes.count(Number(codeCount), format.number(codeCount)),
    });
    return {
      folders: [{ id: 'none', label: codes.unfiled }, ...(folders.data?.folders ?? []).map(counted)],
      tags: (tags.data?.tags ?? []).map(counted),
    };
  }, [codes, format, folders.data, tags.data]);
  return (
    <search ref={element} className={styles.filters} aria-label={codes.filters.label}>
      <SearchText text={search.q ?? ''} />
      <Filter
        label={codes.filters.folder}
        options={options.folders}
        value={search.folder === undefined ? [] : [search.folder]}
        onChange={([folder]) => set({ folder })}
        query={folders}
      />
      <Filter
        label={codes.filters.tags}
        options={options.tags}
        value={search.tags ?? []}
        onChange={(chosen) => set({ tags: chosen.length > 0 ? chosen : undefined })}
        isMultiple
        query={tags}
      />
      <Filter
        label={codes.filters.state}
        options={STATES.map((id) => ({ id, label: codes.states[id] }))}
        value={search.state === undefined ? [] : [search.state]}
        onChange={([chosen]) => set({ state: STATES.find((state) => state === chosen) })}
      />
      <Filter
        label={codes.filters.kind}
        options={KINDS.map((id) => ({ id, label: codes.kinds[id] }))}
        value={search.kind === undefined ? [] : [search.kind]}
        onChange={([chosen]) => set({ kind: KINDS.find((kind) => kind === chosen) })}
      />
      {Object.keys(NO_FILTERS).some((key) => search[key as keyof typeof NO_FILTERS] !== undefined) && (
        <Button
          look="quiet"
          onPress={() => {
            element.current?.querySelector('button')?.focus();
            set(NO_FILTERS);
          }}
        >
          {codes.filters.clear}
        </Button>
      )}
    </search>
  );
});

/** Changes some of the filters in the address. */
function useSetSearch() {
  const navigate = useNavigate();
  return (changes: CodesSearch) =>
    void navigate({ to: '/codes', search: (before) => changed(before, changes), replace: true, state: true });
}

/** Opens the details of a code, or closes them: the browser's Back closes them too, and does not leave the list. */
export function useOpenCode() {
  const router = useRouter();
  const navigate = useNavigate();
  return (code: string | undefined) => {
    const { search, href, state } = router.latestLocation;
    const isOpen = (search as CodesSearch).code !== undefined;
    const openedFrom = isOpen ? state.openedFrom : href;
    const to = { to: '/codes', search: (before: CodesSearch) => changed(before, { code }) } as const;
    // Unless filters were changed meanwhile, which going back would undo.
    if (code === undefined && openedFrom === router.buildLocation(to).href) return router.history.back();
    void navigate({ ...to, replace: isOpen, state: openedFrom === undefined ? {} : { openedFrom } });
  };
}

declare module '@tanstack/react-router' {
  interface HistoryState {
    /** The address of the list in which the details of a code were opened. */
    openedFrom?: string;
  }
}

/** Undefined filters are left out of the address. */
function changed(before: CodesSearch, changes: CodesSearch): CodesSearch {
  return JSON.parse(JSON.stringify({ ...before, ...changes })) as CodesSearch;
}

function SearchText({ text }: { readonly text: string }) {
  const { codes } = useMessages();
  const set = useSetSearch();
  const router = useRouter();
  const [typed, setTyped] = useState(text);
  // The text that the field has searched for. When the address comes to have it, the field may be ahead of it already.
  const sent = useRef(text);
  useEffect(() => {
    if (text === sent.current) return;
    sent.current = text;
    setTyped(text);
  }, [text]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only typing starts the search.
  useEffect(() => {
    if (typed.trim() === sent.current) return;
    const timer = setTimeout(() => {
      // While another page is loaded, a search would lead back from it.
      if (router.latestLocation.pathname !== '/codes') return;
      sent.current = typed.trim();
      set({ q: sent.current || undefined });
    }, TYPED_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <SearchField aria-label={codes.filters.search} value={typed} onChange={setTyped} className={styles.search}>
      <Search aria-hidden size={16} />
      <Input placeholder={codes.filters.placeholder} maxLength={200} className={styles.input} />
    </SearchField>
  );
}

interface FilterProps {
  readonly label: string;
  readonly options: readonly Option<string>[];
  readonly value: readonly string[];
  readonly onChange: (value: readonly string[]) => void;
  readonly isMultiple?: boolean | undefined;
  /** The query that loads the options. */
  readonly query?: Pick<UseQueryResult<unknown, Error>, 'data' | 'error'> | undefined;
}

/** A filter as a chip: what it is set to, and a way to remove it. */
function Filter({ label, options, value, onChange, isMultiple, query }: FilterProps) {
  const { codes, common } = useMessages();
  const errorText = useErrorText();
  const format = useFormat();
  const names = value.map(
    (id) => options.find((option) => option.id === id)?.label ?? (query?.data ? codes.filters.gone : '…'),
  );
  const note = query && !query.data ? (query.error ? errorText(query.error) : common.loading) : undefined;
  const isSet = value.length > 0;
  const opener = useRef<HTMLButtonElement>(null);
  return (
    <div className={isSet ? styles.setChip : styles.chip}>
      <Picker label={label} options={options} value={value} onChange={onChange} isMultiple={isMultiple} note={note}>
        <Button ref={opener} look="quiet">
          <span className={styles.value}>{isSet ? `${label}: ${format.list(names)}` : label}</span>
          {!isSet && <ChevronDown aria-hidden size={16} />}
        </Button>
      </Picker>
      {isSet && (
        <IconButton
          icon={X}
          label={codes.filters.remove(label)}
          onPress={() => {
            opener.current?.focus();
            onChange([]);
          }}
        />
      )}
    </div>
  );
}
