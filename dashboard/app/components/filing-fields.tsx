import { X } from 'lucide-react';
import { type KeyboardEvent, useMemo, useRef, useState } from 'react';
import { foldedName } from '../../../common/codes/folded-name.ts';
import { isLonger } from '../../../common/codes/is-longer.ts';
import { MAX_LABEL_CHARACTERS, MAX_TAGS } from '../../../common/contract/limits.ts';
import { useFolders, useTags } from '../data/labels.ts';
import { useMessages } from '../messages/index.ts';
import styles from './combo-box.module.css';
import { ComboBox } from './combo-box.tsx';
import { passFocus } from './focus.ts';

interface FolderFieldProps {
  /** The folder's name; empty for none. */
  readonly value: string;
  readonly onChange: (name: string) => void;
  readonly error?: string | undefined;
}

/** Chooses a folder by its name, or names a new one, which the core creates. */
export function FolderField({ value, onChange, error }: FolderFieldProps) {
  const { labels } = useMessages();
  const { data } = useFolders();
  const names = useMemo(() => (data?.folders ?? []).map(({ name }) => name), [data]);
  const problem = folderProblem(value);
  const isNew = value.trim() !== '' && data !== undefined && !isAmong(names, value);
  return (
    <ComboBox
      label={labels.folder}
      value={value}
      onChange={onChange}
      names={names}
      isOptional
      description={isNew && !problem ? labels.newFolder : undefined}
      error={error ?? (problem && labels.problems[problem])}
      placeholder={labels.noFolder}
    />
  );
}

interface TagsFieldProps {
  readonly value: readonly string[];
  readonly onChange: (names: readonly string[]) => void;
  readonly error?: string | undefined;
}

/** Chooses tags by their names, or names new ones. Enter or a comma adds one; Backspace removes the last. */
export function TagsField({ value, onChange, error }: TagsFieldProps) {
  const { labels } = useMessages();
  const { data } = useTags();
  const [text, setText] = useState('');
  const names = useMemo(() => (data?.tags ?? []).map(({ name }) => name), [data]);
  const element = useRef<HTMLDivElement>(null);
  const remove = (name: string) => {
    onChange(value.filter((each) => each !== name));
    // To the tag that takes the place of the removed one, or to the field.
    const at = Math.min(value.indexOf(name), value.length - 2);
    passFocus(() => element.current?.querySelectorAll<HTMLElement>('input, li button')[at + 1]);
  };
  const free = useMemo(() => names.filter((name) => !isAmong(value, name)), [names, value]);
  const problem = tagsProblem(value);
  const add = (typed: string) => {
    setText('');
    const added = newTags(typed, value, names);
    if (added.length > 0) onChange([...value, ...added]);
  };
  const choose = (name: string) => {
    setText('');
    onChange([...value, name]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Keys of an input method choose and confirm what will be typed.
    if (event.nativeEvent.isComposing) return;
    const hasOptionFocused = (event.target as Element).getAttribute('aria-activedescendant');
    if (event.key === 'Enter' && text.trim() !== '' && !hasOptionFocused) {
      event.preventDefault();
      add(text);
    }
    if (event.key === 'Backspace' && text === '') onChange(value.slice(0, -1));
  };
  return (
    <div ref={element} className={styles.tagsField}>
      <ComboBox
        label={labels.tags}
        value={text}
        onChange={(typed) => (typed.includes(',') ? add(typed) : setText(typed))}
        onChoose={choose}
        onKeyDown={onKeyDown}
        onBlur={() => add(text)}
        names={free}
        isOptional
        description={labels.tagsHint}
        error={error ?? (problem && labels.problems[problem])}
      />
      {value.length > 0 && (
        <ul aria-label={labels.chosenTags} className={styles.tags}>
          {value.map((name) => (
            <li key={name} className={styles.tag}>
              {name}
              <button
                type="button"
                aria-label={labels.removeTag(name)}
                className={styles.remove}
                onClick={() => remove(name)}
              >
                <X aria-hidden size={16} />
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Why no folder can have this name; undefined if one can, and for no folder. */
export function folderProblem(name: string): 'reserved' | 'tooLong' | undefined {
  if (name.trim().toLowerCase() === 'none') return 'reserved';
  return isLonger(name.trim(), MAX_LABEL_CHARACTERS) ? 'tooLong' : undefined;
}

/** Why a code can't have these tags. */
export function tagsProblem(tags: readonly string[]): 'tooManyTags' | 'tooLong' | undefined {
  if (tags.length > MAX_TAGS) return 'tooManyTags';
  return tags.some((tag) => isLonger(tag, MAX_LABEL_CHARACTERS)) ? 'tooLong' : undefined;
}

/**
 * The tags of a typed list that are not chosen yet. A comma separates them, except in the name of an `existing` one.
 */
export function newTags(typed: string, chosen: readonly string[], existing: readonly string[]): string[] {
  const tags = (isAmong(existing, typed) ? [typed] : typed.split(',')).map((tag) => tag.trim());
  return tags.filter((tag, at) => tag !== '' && !isAmong(chosen, tag) && !isAmong(tags.slice(0, at), tag));
}

/** Whether a name is in a list, as the core compares. */
function isAmong(names: readonly string[], name: string): boolean {
  const wanted = foldedName(name);
  return names.some((each) => foldedName(each) === wanted);
}
