import { useId } from 'react';
import { ToggleButton, ToggleButtonGroup } from 'react-aria-components';
import styles from './target-editor.module.css';

interface ChoicesProps {
  readonly label: string;
  readonly options: readonly { readonly id: string; readonly label: string }[];
  readonly value: readonly string[];
  readonly onChange: (value: readonly string[]) => void;
  readonly error: string | undefined;
}

/** Chooses several of a few values, each by a button. */
export function Choices({ label, options, value, onChange, error }: ChoicesProps) {
  const errorId = useId();
  return (
    <div data-invalid={error !== undefined || undefined}>
      <ToggleButtonGroup
        aria-label={label}
        aria-describedby={errorId}
        selectionMode="multiple"
        selectedKeys={value}
        onSelectionChange={(keys) => onChange([...keys].map(String))}
        className={styles.choices}
      >
        {options.map(({ id, label }) => (
          <ToggleButton key={id} id={id} className={styles.choice}>
            {label}
          </ToggleButton>
        ))}
      </ToggleButtonGroup>
      {error !== undefined && (
        <p id={errorId} className={styles.error}>
          {error}
        </p>
      )}
    </div>
  );
}
