import { ChevronDown } from 'lucide-react';
import {
  Select as AriaSelect,
  Button,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
  SelectValue,
  Text,
} from 'react-aria-components';
import field from './field.module.css';
import styles from './menu.module.css';

export interface Option<T extends string> {
  readonly id: T;
  readonly label: string;
  readonly description?: string | undefined;
}

interface SelectProps<T extends string> {
  readonly label: string;
  readonly options: readonly Option<T>[];
  readonly value: T;
  readonly onChange: (value: T) => void;
  /** The label is read aloud only, where the context says it to those who see. */
  readonly isLabelHidden?: boolean | undefined;
}

/** A choice of one of few values. */
export function Select<T extends string>(props: SelectProps<T>) {
  const { label, options, value, onChange, isLabelHidden } = props;
  return (
    <AriaSelect
      className={field.field}
      selectedKey={value}
      onSelectionChange={(key) => onChange(key as T)}
      {...(isLabelHidden && { 'aria-label': label })}
    >
      {!isLabelHidden && <Label className={field.label}>{label}</Label>}
      <Button className={styles.select}>
        <SelectValue>{({ selectedText }) => selectedText}</SelectValue>
        <ChevronDown aria-hidden size={16} />
      </Button>
      <Popover className={styles.popover} offset={4}>
        <ListBox items={options} className={styles.list}>
          {(option) => (
            <ListBoxItem id={option.id} textValue={option.label} className={styles.item}>
              <Text slot="label">{option.label}</Text>
              {option.description && (
                <Text slot="description" className={field.description}>
                  {option.description}
                </Text>
              )}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </AriaSelect>
  );
}
