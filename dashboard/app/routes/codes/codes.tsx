import { Link, useSearch } from '@tanstack/react-router';
import { Plus, QrCode, SearchX } from 'lucide-react';
import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react';
import { buttonLink } from '../../components/button.tsx';
import { catchFocus } from '../../components/focus.ts';
import { LoadFailed } from '../../components/loaded.tsx';
import { Loading } from '../../components/loading.tsx';
import { Empty, Notice, Page } from '../../components/page.tsx';
import { PAGE, readPage, useCodesList } from '../../data/code-lists.ts';
import { useErrorText } from '../../data/error-text.ts';
import { useFormat } from '../../data/format.ts';
import { useMay } from '../../data/session.ts';
import { showToast } from '../../data/toasts.ts';
import { useMessages } from '../../messages/index.ts';
import { BulkBar } from './bulk-bar.tsx';
import { CodePanel } from './code-panel.tsx';
import { CodeTable } from './code-table.tsx';
import styles from './codes.module.css';
import { Filters, useOpenCode } from './filters.tsx';
import { filterOf } from './search.ts';
import { useSelection } from './selection.ts';

/** The most codes that are selected as a range, whose pages must all be loaded. */
const MAX_RANGE = 2_000;

/** The account's codes. */
export function Codes() {
  const { shell, codes } = useMessages();
  const format = useFormat();
  const errorText = useErrorText();
  const mayEdit = useMay('editor');
  const search = useSearch({ from: '/codes' });
  const open = useOpenCode();
  const table = useRef<HTMLDivElement>(null);
  const filter = filterOf(search);
  const key = JSON.stringify(filter);
  const [shown, setShown] = useState({ key, first: 0, last: 0 });
  const list = useCodesList(filter, ...(shown.key === key ? ([shown.first, shown.last] as const) : ([0, 0] as const)));
  const selecting = useSelection(key);
  const previousKey = useRef(key);
  useEffect(() => {
    // With the filters goes the link that clears them if no code matches.
    if (previousKey.current !== key) requestAnimationFrame(catchFocus);
    previousKey.current = key;
  }, [key]);
  const onShow = useCallback((first: number, last: number) => setShown({ key, first, last }), [key]);
  const selectRange = async (from: number, to: number) => {
    const [first, last] = [Math.min(from, to), Math.max(from, to)];
    if (last - first >= MAX_RANGE) return showToast(codes.tooManyInRange(format.number(MAX_RANGE)), { kind: 'failed' });
    const pages = Array.from(
      { length: Math.floor(last / PAGE) - Math.floor(first / PAGE) + 1 },
      (_, index) => Math.floor(first / PAGE) + index,
    );
    try {
      const loaded = await Promise.all(pages.map((page) => readPage(filter, page)));
      const start = (pages[0] ?? 0) * PAGE;
      selecting.add(loaded.flat().slice(first - start, last - start + 1));
    } catch (error) {
      showToast(errorText(error), { kind: 'failed' });
    }
  };

  const { total } = list;
  const create = mayEdit && (
    <Link to="/codes/new" className={buttonLink.primary}>
      <Plus aria-hidden size={16} />
      {codes.newCode}
    </Link>
  );
  let content: ReactNode = null;
  if (total === undefined) content = list.error ? null : <Loading />;
  else if (total > 0) {
    content = (
      <div className={styles.columns}>
        <CodeTable
          key={key}
          list={table}
          total={total}
          codeAt={list.codeAt}
          onShow={onShow}
          selecting={selecting}
          isSelectable={mayEdit}
          onSelectRange={(from, to) => void selectRange(from, to)}
          openCode={search.code}
          onOpen={(code) => open(code?.id)}
        />
        {search.code !== undefined && <CodePanel key={search.code} id={search.code} list={table} />}
      </div>
    );
  } else if (key === '{}') {
    content = (
      <Empty icon={QrCode} title={codes.empty.title} action={create}>
        {codes.empty.text}
      </Empty>
    );
  } else {
    content = (
      <Empty
        icon={SearchX}
        title={codes.noMatch.title}
        action={
          <Link to="/codes" className={buttonLink.plain}>
            {codes.filters.clear}
          </Link>
        }
      >
        {codes.noMatch.text}
      </Empty>
    );
  }
  return (
    <Page
      title={shell.nav.codes}
      subtitle={
        total === undefined ? ' ' : (list.isLowerBound ? codes.atLeast : codes.count)(total, format.number(total))
      }
      actions={create}
      isFull
    >
      <Filters search={search} />
      {list.error !== null && <LoadFailed error={list.error} retry={list.retry} />}
      {list.isLowerBound && <Notice>{codes.partlySearched}</Notice>}
      {mayEdit && total !== undefined && (
        <BulkBar
          list={table}
          selecting={selecting}
          filter={filter}
          total={total}
          isLowerBound={list.isLowerBound}
          isDeleted={search.state === 'deleted'}
        />
      )}
      {content}
    </Page>
  );
}
