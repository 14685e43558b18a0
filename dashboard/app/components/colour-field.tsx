import { COLOUR } from '../../../common/codes/colour.ts';
import { designProblem } from '../../../common/codes/design-problem.ts';
import { type Messages, useMessages } from '../messages/index.ts';
import styles from './colour-field.module.css';
import { Field } from './field.tsx';

interface ColourFieldProps {
  readonly label: string;
  /** `#rgb` or `#rrggbb` once it is valid; empty for the default. */
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** The colour if none is chosen, `#rrggbb`. */
  readonly fallback: string;
}

/** Chooses a colour, by the browser's picker or by typing its digits. */
export function ColourField({ label, value, onChange, fallback }: ColourFieldProps) {
  const { common } = useMessages();
  const swatch = colourOr(value, fallback);
  const full = swatch.length === 4 ? swatch.replace(/[^#]/g, '$&$&') : swatch;
  return (
    <div className={styles.control}>
      <Field
        label={label}
        value={value}
        onChange={(typed) => onChange(typed.trim())}
        placeholder={fallback}
        error={isColour(value) ? undefined : common.colourProblem}
        maxLength={7}
        mono
      />
      <input
        type="color"
        aria-label={common.pickColour(label)}
        value={full}
        onChange={(event) => onChange(event.target.value)}
        className={styles.swatch}
      />
    </div>
  );
}

/** Whether the core takes this for a colour; empty is the default. */
export function isColour(value: string): boolean {
  return value === '' || COLOUR.test(value);
}

/** Why codes in these colours, or those that are empty or incomplete by default, may be hard to scan. */
export function colourWarning(foreground: string, background: string, { newCode }: Messages): string | undefined {
  const problem = designProblem(colourOr(foreground, '#000000'), colourOr(background, '#ffffff'));
  if (problem?.kind === 'inverted') return newCode.inverted;
  return problem && newCode.lowContrast(problem.contrast.toFixed(1));
}

/** The colour if it is complete, otherwise the default. */
export function colourOr(value: string, fallback: string): string {
  return COLOUR.test(value) ? value : fallback;
}
