import { ChevronDown } from 'lucide-react';
import { useId } from 'react';
import { Button } from '../../components/button.tsx';
import { Picker } from '../../components/picker.tsx';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import { useCountries } from './countries.ts';
import styles from './target-editor.module.css';

interface CountryChoiceProps {
  /** Their codes, or `unknown`. */
  readonly value: readonly string[];
  readonly onChange: (value: readonly string[]) => void;
  readonly error: string | undefined;
}

/** Chooses several countries from a list. */
export function CountryChoice({ value, onChange, error }: CountryChoiceProps) {
  const { form, preview } = useMessages().target;
  const format = useFormat();
  const countries = useCountries();
  const errorId = useId();
  const chosen =
    value.length === 0 ? form.choose : format.list(value.map((code) => format.country(code) ?? preview.unknown));
  return (
    <>
      <div data-invalid={error !== undefined || undefined}>
        <Picker
          label={form.kinds.countries}
          options={[...countries, { id: 'unknown', label: preview.unknown }]}
          value={value}
          onChange={onChange}
          isMultiple
        >
          <Button look="field" aria-label={`${form.kinds.countries}: ${chosen}`} aria-describedby={errorId}>
            {chosen}
            <ChevronDown aria-hidden size={16} />
          </Button>
        </Picker>
      </div>
      {error !== undefined && (
        <p id={errorId} className={styles.error}>
          {error}
        </p>
      )}
    </>
  );
}
