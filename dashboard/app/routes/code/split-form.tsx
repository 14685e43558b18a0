import { Plus, X } from 'lucide-react';
import { useRef } from 'react';
import { Button, IconButton } from '../../components/button.tsx';
import { Field } from '../../components/field.tsx';
import { passFocus } from '../../components/focus.ts';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import { type DraftVariant, newVariant, weightOf } from './policy-draft.ts';
import styles from './target-editor.module.css';

const [MIN_VARIANTS, MAX_VARIANTS] = [2, 10];

interface SplitFormProps {
  readonly variants: readonly DraftVariant[];
  readonly path: string;
  readonly errors: ReadonlyMap<string, string>;
  readonly onChange: (variants: readonly DraftVariant[]) => void;
}

/** The addresses of a split with their weights, and the share of visitors that each gets. */
export function SplitForm({ variants, path, errors, onChange }: SplitFormProps) {
  const { form } = useMessages().target;
  const format = useFormat();
  const element = useRef<HTMLDivElement>(null);
  const add = useRef<HTMLButtonElement>(null);
  const sum = variants.reduce((total, { weight }) => total + weightOf(weight), 0);
  const set = (key: string, change: Partial<DraftVariant>) =>
    onChange(variants.map((each) => (each.key === key ? { ...each, ...change } : each)));
  const nextLabel = () => {
    const used = new Set(variants.map(({ label }) => label));
    return [...'abcdefghijk'].find((letter) => !used.has(letter)) ?? '';
  };
  return (
    <div ref={element} className={styles.split}>
      {variants.map(({ key, label, weight, url }, index) => (
        <fieldset key={key} className={styles.variant}>
          <legend className="visually-hidden">{form.variant(index + 1)}</legend>
          <Field
            label={form.label}
            value={label}
            onChange={(value) => set(key, { label: value })}
            error={errors.get(`${path}[${index}].label`)}
          />
          <Field
            label={form.weight}
            value={weight}
            onChange={(value) => set(key, { weight: value })}
            description={sum > 0 ? form.share(format.percent(weightOf(weight) / sum)) : undefined}
            error={errors.get(`${path}[${index}].weight`)}
            inputMode="numeric"
          />
          <Field
            label={form.url}
            value={url}
            onChange={(value) => set(key, { url: value })}
            error={errors.get(`${path}[${index}].target_url`)}
            inputMode="url"
            mono
          />
          {variants.length > MIN_VARIANTS && (
            <div className={styles.remove}>
              <IconButton
                icon={X}
                label={form.removeVariant(label)}
                onPress={() => {
                  onChange(variants.filter((each) => each.key !== key));
                  passFocus(() => add.current);
                }}
              />
            </div>
          )}
        </fieldset>
      ))}
      {errors.has(path) && <p className={styles.error}>{errors.get(path)}</p>}
      {variants.length < MAX_VARIANTS && (
        <div>
          <Button
            ref={add}
            icon={Plus}
            look="quiet"
            onPress={() => {
              onChange([...variants, newVariant(nextLabel())]);
              // With the last one that can be added, the button is gone.
              passFocus(() => element.current?.querySelector<HTMLElement>(':scope > fieldset:last-of-type input'));
            }}
          >
            {form.addVariant}
          </Button>
        </div>
      )}
    </div>
  );
}
