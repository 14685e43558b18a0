import type { HTMLInputTypeAttribute, ReactNode, Ref } from 'react';
import { FieldError, Input, Label, Text, TextArea, TextField } from 'react-aria-components';
import { useFirstMessages } from '../messages/index.ts';
import styles from './field.module.css';

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly description?: ReactNode;
  /** Why the value cannot be used; shown below the field, and read with it. */
  readonly error?: string | undefined;
  readonly name?: string | undefined;
  readonly type?: HTMLInputTypeAttribute | undefined;
  readonly inputMode?: 'text' | 'url' | 'numeric' | 'email' | 'search' | undefined;
  readonly placeholder?: string | undefined;
  readonly isOptional?: boolean | undefined;
  readonly autoFocus?: boolean | undefined;
  readonly maxLength?: number | undefined;
  readonly autoComplete?: string | undefined;
  /** Several lines of text; the number of them. */
  readonly rows?: number | undefined;
  /** For addresses and ids. */
  readonly mono?: boolean | undefined;
  readonly ref?: Ref<HTMLInputElement> | undefined;
}

/** A labelled text field with its description and its error. */
export function Field(props: FieldProps) {
  const { label, description, error, isOptional, placeholder, rows, mono, inputMode, ref, ...field } = props;
  const { common } = useFirstMessages();
  const className = mono ? `${styles.input} ${styles.mono}` : styles.input;
  return (
    <TextField {...field} isInvalid={error !== undefined} className={styles.field}>
      <Label className={styles.label}>
        {label} {isOptional && <span className={styles.optional}>({common.optional})</span>}
      </Label>
      {rows === undefined ? (
        <Input ref={ref} placeholder={placeholder} inputMode={inputMode} className={className} />
      ) : (
        <TextArea rows={rows} placeholder={placeholder} className={className} />
      )}
      {description !== undefined && (
        <Text slot="description" className={styles.description}>
          {description}
        </Text>
      )}
      <FieldError className={styles.error}>{error}</FieldError>
    </TextField>
  );
}
