import { type ReactNode, useDeferredValue, useState } from 'react';
import {
  Autocomplete,
  Dialog,
  DialogTrigger,
  Input,
  ListBox,
  ListBoxItem,
  Popover,
  SearchField,
  Text,
} from 'react-aria-components';
import { foldedName } from '../../../common/codes/folded-name.ts';
import { useFormat } from '../data/format.ts';
import { useMessages } from '../messages/index.ts';
import field from './field.module.css';
import menu from './menu.module.css';
import styles from './picker.module.css';
import type { Option } from './select.tsx';

/** The most options that are shown at a time; an account has up to 10,000 folders. */
const MAX_SHOWN = 50;

/** The id of the option that creates what was typed. */
const CREATE = ' create';

interface PickerProps {
  /** What is chosen: `Folder`. */
  readonly label: string;
  readonly options: readonly Option<string>[];
  /** The chosen ids. */
  readonly value: readonly string[];
  readonly onChange: (value: readonly string[]) => void;
  /** Several can be chosen; otherwise choosing closes the list. */
  readonly isMultiple?: boolean | undefined;
  /** Called with a typed name that no option has, if such names can be chosen. */
  readonly onCreate?: ((name: string) => void) | undefined;
  /** Whether something can have a typed name; default: any can. */
  readonly mayBeName?: ((name: string) => boolean) | undefined;
  /** Below the list: why it lacks options. */
  readonly note?: string | undefined;
  /** The button that opens the list. */
  readonly children: ReactNode;
}

/** A choice from a long list, narrowed down by typing. */
export function Picker({ children, ...list }: PickerProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <DialogTrigger isOpen={isOpen} onOpenChange={setOpen}>
      {children}
      <Popover className={menu.popover} offset={4} placement="bottom start">
        <Dialog aria-label={list.label} className={styles.dialog}>
          <PickerList {...list} onClose={() => setOpen(false)} />
        </Dialog>
      </Popover>
    </DialogTrigger>
  );
}

/**
 * The open list. A component of its own, so that a closed picker does not search 10,000 names with each rendering of
 * the page.
 */
function PickerList(props: Omit<PickerProps, 'children'> & { readonly onClose: () => void }) {
  const { label, options, value, onChange, isMultiple, onCreate, mayBeName, note, onClose } = props;
  const { codes } = useMessages();
  const format = useFormat();
  const [text, setText] = useState('');
  const wanted = useDeferredValue(text.trim());
  const folded = foldedName(wanted);
  const matching = options.filter((option) => foldedName(option.label).includes(folded));
  const isNew = wanted !== '' && !options.some((option) => foldedName(option.label) === folded);
  const shown: Option<string>[] = matching.slice(0, MAX_SHOWN);
  if (onCreate && isNew && (mayBeName?.(wanted) ?? true))
    shown.push({ id: CREATE, label: codes.filters.create(wanted) });
  const choose = (id: string) => {
    if (id === CREATE) onCreate?.(wanted);
    else if (!isMultiple) onChange([id]);
    else onChange(value.includes(id) ? value.filter((each) => each !== id) : [...value, id]);
    if (!isMultiple || id === CREATE) onClose();
  };
  return (
    <Autocomplete inputValue={text} onInputChange={setText}>
      <SearchField aria-label={codes.filters.find(label)} autoFocus>
        <Input placeholder={codes.filters.find(label)} className={styles.input} />
      </SearchField>
      <ListBox
        aria-label={label}
        items={shown}
        className={styles.list}
        onAction={(key) => choose(String(key))}
        renderEmptyState={() => !note && <p className={styles.none}>{codes.filters.noMatch}</p>}
      >
        {(option) => (
          <ListBoxItem id={option.id} textValue={option.label} className={menu.item}>
            <span className={value.includes(option.id) ? styles.chosen : styles.label}>
              {value.includes(option.id) && <span className="visually-hidden">✓ </span>}
              {option.label}
            </span>
            {option.description && (
              <Text slot="description" className={field.description}>
                {option.description}
              </Text>
            )}
          </ListBoxItem>
        )}
      </ListBox>
      {matching.length > MAX_SHOWN && (
        <p className={styles.none}>{codes.filters.refine(format.number(matching.length - MAX_SHOWN))}</p>
      )}
      {note && <p className={styles.none}>{note}</p>}
    </Autocomplete>
  );
}
