import { Link } from '@tanstack/react-router';
import { FolderTree, Search } from 'lucide-react';
import { useState } from 'react';
import { Input, SearchField } from 'react-aria-components';
import { buttonLink } from '../../components/button.tsx';
import { LoadFailed } from '../../components/loaded.tsx';
import { Loading } from '../../components/loading.tsx';
import { Empty, Page } from '../../components/page.tsx';
import { useFolders, useTags } from '../../data/labels.ts';
import { useMay } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import { DeleteDialog } from './delete-dialog.tsx';
import type { Label, LabelKind } from './label-calls.ts';
import { type LabelAction, LabelList } from './label-list.tsx';
import styles from './labels.module.css';
import { MergeDialog } from './merge-dialog.tsx';
import { RenameDialog } from './rename-dialog.tsx';

interface OpenDialog {
  readonly action: LabelAction;
  readonly kind: LabelKind;
  readonly label: Label;
  /** The one to merge into, if a rename led there. */
  readonly into?: Label;
}

/** The page of all folders and tags, on which they are renamed, merged and deleted. */
export function Labels() {
  const { labels, newCode, shell } = useMessages();
  const mayChange = useMay('editor');
  const folders = useFolders();
  const tags = useTags();
  const [search, setSearch] = useState('');
  const [open, setOpen] = useState<OpenDialog>();
  const error = folders.error ?? tags.error;
  const lists = folders.data && tags.data && { folder: folders.data.folders, tag: tags.data.tags };
  const onAction = (action: LabelAction, kind: LabelKind, label: Label) => setOpen({ action, kind, label });
  const close = () => setOpen(undefined);
  const isEmpty = lists && lists.folder.length === 0 && lists.tag.length === 0;
  return (
    <Page title={shell.nav.labels} subtitle={labels.intro}>
      {error && !lists && (
        <LoadFailed
          error={error}
          retry={() => {
            void folders.refetch();
            void tags.refetch();
          }}
        />
      )}
      {!lists && !error && <Loading />}
      {isEmpty && (
        <Empty
          icon={FolderTree}
          title={labels.emptyTitle}
          action={
            mayChange && (
              <Link to="/codes/new" className={buttonLink.primary}>
                {newCode.title}
              </Link>
            )
          }
        >
          {labels.emptyText}
        </Empty>
      )}
      {lists && !isEmpty && (
        <>
          <SearchField aria-label={labels.search} value={search} onChange={setSearch} className={styles.search}>
            <Search aria-hidden size={16} />
            <Input placeholder={labels.search} className={styles.searchInput} />
          </SearchField>
          <div className={styles.lists}>
            <LabelList kind="folder" labels={lists.folder} search={search} onAction={onAction} />
            <LabelList kind="tag" labels={lists.tag} search={search} onAction={onAction} />
          </div>
        </>
      )}
      {lists && open?.action === 'rename' && (
        <RenameDialog
          kind={open.kind}
          label={open.label}
          labels={lists[open.kind]}
          onClose={close}
          onMerge={(into) => setOpen({ ...open, action: 'merge', into })}
        />
      )}
      {lists && open?.action === 'merge' && (
        <MergeDialog kind={open.kind} label={open.label} labels={lists[open.kind]} into={open.into} onClose={close} />
      )}
      {open?.action === 'delete' && <DeleteDialog kind={open.kind} label={open.label} onClose={close} />}
    </Page>
  );
}
