import { Download, FolderInput, ListChecks, Pause, Play, RotateCcw, Tag, Target, Trash2, X } from 'lucide-react';
import { type RefObject, useState } from 'react';
import { Button, IconButton } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { folderProblem, tagsProblem } from '../../components/filing-fields.tsx';
import { Picker } from '../../components/picker.tsx';
import type { CodesFilter } from '../../data/code-lists.ts';
import { useFormat } from '../../data/format.ts';
import { useFolders, useTags } from '../../data/labels.ts';
import { PHONE, useMedia } from '../../data/media.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './bulk.module.css';
import type { BulkChange } from './bulk-change.ts';
import { BulkRun } from './bulk-run.tsx';
import { RetargetDialog } from './retarget-dialog.tsx';
import type { Selecting } from './selection.ts';

interface BulkBarProps {
  /** The list, which gets the focus from this bar. */
  readonly list: RefObject<HTMLElement | null>;
  readonly selecting: Selecting;
  readonly filter: CodesFilter;
  /** All codes that match the filters. */
  readonly total: number;
  /** Whether more of them may match than `total`: those that have not been searched. */
  readonly isLowerBound: boolean;
  /** Whether the list is one of deleted codes, which can only be restored. */
  readonly isDeleted: boolean;
}

/** What can be done with the selected codes. */
export function BulkBar({ list, selecting, filter, total, isLowerBound, isDeleted }: BulkBarProps) {
  const { codes, common } = useMessages();
  const { bulk } = codes;
  // There the list has no head with a box for all.
  const isPhone = useMedia(PHONE);
  const format = useFormat();
  const [asked, setAsked] = useState<'pause' | 'delete' | 'retarget'>();
  const [running, setRunning] = useState<BulkChange | { readonly kind: 'export' }>();
  const folders = useFolders();
  const tags = useTags();
  const count = selecting.count(total);
  const isAtLeast = selecting.selection.all && isLowerBound;
  const counted = (isAtLeast ? bulk.atLeast : codes.count)(count, format.number(count));
  const tagOptions = (tags.data?.tags ?? []).map(({ id, name }) => ({ id, label: name }));
  if (count === 0 && !running) return null;
  return (
    <>
      {count > 0 && (
        <div className={styles.bar} role="toolbar" aria-label={bulk.label}>
          <span className={styles.count}>
            <IconButton
              icon={X}
              label={codes.unselect}
              onPress={() => {
                list.current?.focus({ preventScroll: true });
                selecting.clear();
              }}
            />
            <strong role="status">
              {codes.selected((isAtLeast ? codes.atLeast : codes.count)(count, format.number(count)))}
            </strong>
            {isPhone && count < total && (
              <IconButton icon={ListChecks} label={codes.selectAll} onPress={selecting.all} />
            )}
          </span>
          {isDeleted ? (
            <Button icon={RotateCcw} onPress={() => setRunning({ kind: 'restore' })}>
              {bulk.restore}
            </Button>
          ) : (
            <>
              <Picker
                label={bulk.folder}
                options={[
                  { id: 'none', label: codes.unfiled },
                  ...(folders.data?.folders ?? []).map(({ id, name }) => ({ id, label: name })),
                ]}
                value={[]}
                onChange={([folder = 'none']) => setRunning({ kind: 'folder', folder })}
                onCreate={(folder) => setRunning({ kind: 'folder', folder })}
                mayBeName={(name) => folderProblem(name) === undefined}
              >
                <Button icon={FolderInput}>{bulk.folder}</Button>
              </Picker>
              <Picker
                label={bulk.addTag}
                options={tagOptions}
                value={[]}
                onChange={([tag = '']) => setRunning({ kind: 'addTag', tag })}
                onCreate={(tag) => setRunning({ kind: 'addTag', tag })}
                mayBeName={(name) => tagsProblem([name]) === undefined}
              >
                <Button icon={Tag}>{bulk.addTag}</Button>
              </Picker>
              <Picker
                label={bulk.removeTag}
                options={tagOptions}
                value={[]}
                onChange={([tag = '']) => setRunning({ kind: 'removeTag', tag })}
              >
                <Button>{bulk.removeTag}</Button>
              </Picker>
              <Button icon={Pause} onPress={() => setAsked('pause')}>
                {bulk.pause}
              </Button>
              <Button icon={Play} onPress={() => setRunning({ kind: 'resume' })}>
                {bulk.resume}
              </Button>
              <Button icon={Target} onPress={() => setAsked('retarget')}>
                {bulk.retarget}
              </Button>
              <Button icon={Trash2} look="danger" onPress={() => setAsked('delete')}>
                {common.delete}
              </Button>
            </>
          )}
          <IconButton icon={Download} label={bulk.export} onPress={() => setRunning({ kind: 'export' })} />
        </div>
      )}
      <Confirm
        title={asked === 'delete' ? bulk.confirmDelete(counted) : bulk.confirmPause(counted)}
        isOpen={asked === 'delete' || asked === 'pause'}
        onClose={() => setAsked(undefined)}
        action={asked === 'delete' ? common.delete : bulk.pause}
        onConfirm={() => {
          if (asked === 'delete' || asked === 'pause') setRunning({ kind: asked });
          return undefined;
        }}
      >
        {asked === 'delete' ? bulk.deleteText : bulk.pauseText}
      </Confirm>
      {asked === 'retarget' && (
        <RetargetDialog
          counted={counted}
          onClose={() => setAsked(undefined)}
          onSubmit={(url, note) => {
            setAsked(undefined);
            setRunning({ kind: 'retarget', url, note });
          }}
        />
      )}
      {running && (
        <BulkRun
          job={running}
          selection={selecting.selection}
          filter={filter}
          count={isAtLeast ? undefined : count}
          onDone={(mayBeRepeated) => {
            setRunning(undefined);
            if (running.kind !== 'export' && !mayBeRepeated) selecting.clear();
          }}
        />
      )}
    </>
  );
}
