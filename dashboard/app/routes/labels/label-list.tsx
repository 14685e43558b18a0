import { Link } from '@tanstack/react-router';
import { Folder, Merge, MoreHorizontal, Pencil, Tag, Trash2 } from 'lucide-react';
import { useRef, useState } from 'react';
import { foldedName } from '../../../../common/codes/folded-name.ts';
import { Button, IconButton } from '../../components/button.tsx';
import { focusableRow, passFocus } from '../../components/focus.ts';
import { Menu } from '../../components/menu.tsx';
import { Section } from '../../components/page.tsx';
import { useFormat } from '../../data/format.ts';
import { useMay } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import type { Label, LabelKind } from './label-calls.ts';
import styles from './labels.module.css';

/** Entries that are shown at first; an account has up to 10,000. */
const MAX_SHOWN = 200;

export type LabelAction = 'rename' | 'merge' | 'delete';

interface LabelListProps {
  readonly kind: LabelKind;
  readonly labels: readonly Label[];
  /** Only names that contain this. */
  readonly search: string;
  readonly onAction: (action: LabelAction, kind: LabelKind, label: Label) => void;
}

/** All folders or all tags, with their numbers of codes. */
export function LabelList({ kind, labels, search, onAction }: LabelListProps) {
  const { labels: texts } = useMessages();
  const format = useFormat();
  const mayChange = useMay('editor');
  const [isWhole, setWhole] = useState(false);
  const list = useRef<HTMLUListElement>(null);
  const wanted = foldedName(search);
  const matching = labels.filter(({ name }) => foldedName(name).includes(wanted));
  const shown = isWhole ? matching : matching.slice(0, MAX_SHOWN);
  const title = kind === 'folder' ? texts.folders : texts.tags;
  const Icon = kind === 'folder' ? Folder : Tag;
  return (
    <Section title={title} actions={<span className={styles.count}>{format.number(matching.length)}</span>}>
      {shown.length === 0 ? (
        <p className={styles.none}>
          {labels.length > 0 ? texts.noMatch : kind === 'folder' ? texts.noFolders : texts.noTags}
        </p>
      ) : (
        <ul ref={list} className={styles.list}>
          {shown.map((label) => (
            <li key={label.id} className={styles.label}>
              <Icon aria-hidden size={16} />
              <Link
                to="/codes"
                search={kind === 'folder' ? { folder: label.id } : { tags: [label.id] }}
                className={styles.name}
              >
                {label.name}
              </Link>
              <CodeCount count={label.codeCount} />
              {mayChange && (
                <LabelMenu
                  label={label}
                  canMerge={labels.length > 1}
                  onAction={(action) => onAction(action, kind, label)}
                />
              )}
            </li>
          ))}
        </ul>
      )}
      {shown.length < matching.length && (
        <Button
          onPress={() => {
            setWhole(true);
            passFocus(() => focusableRow(list.current, MAX_SHOWN));
          }}
        >
          {texts.showAll(format.number(matching.length))}
        </Button>
      )}
    </Section>
  );
}

function CodeCount({ count }: { readonly count: bigint }) {
  const { common } = useMessages();
  const format = useFormat();
  return <span className={`figures ${styles.codes}`}>{common.codes(Number(count), format.number(count))}</span>;
}

interface LabelMenuProps {
  readonly label: Label;
  readonly canMerge: boolean;
  readonly onAction: (action: LabelAction) => void;
}

function LabelMenu({ label, canMerge, onAction }: LabelMenuProps) {
  const { common, labels } = useMessages();
  const name = labels.actionsOf(label.name);
  return (
    <Menu
      label={name}
      actions={[
        { id: 'rename', label: labels.rename, icon: Pencil, onAction: () => onAction('rename') },
        { id: 'merge', label: labels.merge, icon: Merge, isDisabled: !canMerge, onAction: () => onAction('merge') },
        { id: 'delete', label: common.delete, icon: Trash2, isDanger: true, onAction: () => onAction('delete') },
      ]}
    >
      <IconButton icon={MoreHorizontal} label={name} />
    </Menu>
  );
}
