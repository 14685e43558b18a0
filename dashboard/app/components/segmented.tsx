import { Label, Radio, RadioGroup } from 'react-aria-components';
import styles from './segmented.module.css';

interface SegmentedProps<T extends string> {
  /** Read aloud; the options say it to those who see. */
  readonly label: string;
  readonly options: readonly { readonly id: T; readonly label: string }[];
  readonly value: T;
  readonly onChange: (value: T) => void;
}

/** A choice of one of two to four values that are all visible. */
export function Segmented<T extends string>({ label, options, value, onChange }: SegmentedProps<T>) {
  return (
    <RadioGroup value={value} onChange={(id) => onChange(id as T)} orientation="horizontal">
      <Label className="visually-hidden">{label}</Label>
      <div className={styles.options}>
        {options.map((option) => (
          <Radio key={option.id} value={option.id} className={styles.option}>
            {option.label}
          </Radio>
        ))}
      </div>
    </RadioGroup>
  );
}
