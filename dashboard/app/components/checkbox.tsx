import { Check } from 'lucide-react';
import type { ReactNode } from 'react';
import { Checkbox as AriaCheckbox } from 'react-aria-components';
import styles from './checkbox.module.css';

interface CheckboxProps {
  readonly isSelected: boolean;
  readonly onChange: (isSelected: boolean) => void;
  readonly children: ReactNode;
}

/** A setting that is on or off. */
export function Checkbox({ isSelected, onChange, children }: CheckboxProps) {
  return (
    <AriaCheckbox isSelected={isSelected} onChange={onChange} className={styles.checkbox}>
      <span className={styles.box}>{isSelected && <Check aria-hidden size={16} strokeWidth={3} />}</span>
      {children}
    </AriaCheckbox>
  );
}
