import { ChevronDown } from 'lucide-react';
import type { KeyboardEvent, ReactNode } from 'react';
import {
  ComboBox as AriaComboBox,
  Button,
  FieldError,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
  Text,
} from 'react-aria-components';
import { foldedName } from '../../../common/codes/folded-name.ts';
import { useMessages } from '../messages/index.ts';
import styles from './combo-box.module.css';
import field from './field.module.css';
import menu from './menu.module.css';

/** The most names that are offered at a time; typing finds the others. */
const MAX_OFFERED = 50;

interface ComboBoxProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** Existing names; others may be typed. */
  readonly names: readonly string[];
  /** When a name is chosen from the list. Absent: it becomes the value. */
  readonly onChoose?: ((name: string) => void) | undefined;
  readonly onKeyDown?: ((event: KeyboardEvent) => void) | undefined;
  readonly onBlur?: (() => void) | undefined;
  readonly description?: ReactNode;
  readonly error?: string | undefined;
  readonly name?: string | undefined;
  readonly placeholder?: string | undefined;
  readonly isOptional?: boolean | undefined;
  readonly autoFocus?: boolean | undefined;
}

/** A text field that offers existing names while one types. */
export function ComboBox(props: ComboBoxProps) {
  const { label, value, onChange, names, onChoose = onChange, onKeyDown, onBlur, description, error } = props;
  const { common } = useMessages();
  const wanted = foldedName(value);
  const offered: { readonly id: string }[] = [];
  for (const id of names) {
    if (foldedName(id).includes(wanted)) offered.push({ id });
    if (offered.length === MAX_OFFERED) break;
  }
  // Once a name is complete, the list would only cover what comes below.
  if (offered.length === 1 && foldedName(offered[0]?.id ?? '') === wanted) offered.pop();
  return (
    <AriaComboBox
      allowsCustomValue
      className={field.field}
      inputValue={value}
      onInputChange={onChange}
      value={null}
      onChange={(key) => key !== null && onChoose(String(key))}
      items={offered}
      defaultFilter={() => true}
      isInvalid={error !== undefined}
      {...(props.name !== undefined && { name: props.name })}
      {...(props.autoFocus && { autoFocus: true })}
      {...(onKeyDown && { onKeyDown })}
      {...(onBlur && { onBlur })}
    >
      <Label className={field.label}>
        {label} {props.isOptional && <span className={field.optional}>({common.optional})</span>}
      </Label>
      <div className={styles.control}>
        <Input placeholder={props.placeholder} className={field.input} />
        <Button className={styles.open}>
          <ChevronDown aria-hidden size={16} />
        </Button>
      </div>
      {description !== undefined && (
        <Text slot="description" className={field.description}>
          {description}
        </Text>
      )}
      <FieldError className={field.error}>{error}</FieldError>
      <Popover className={`${menu.popover} ${styles.popover}`} offset={4}>
        <ListBox className={menu.list}>
          {({ id }: { readonly id: string }) => (
            <ListBoxItem id={id} textValue={id} className={menu.item}>
              {id}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </AriaComboBox>
  );
}
